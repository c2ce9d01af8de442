"""`ai`: ask a model once, and let it use tools."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated, Any, ClassVar

from msgspec import Meta, structs

from .. import kinds, provider
from ..attached import PromptFile
from ..codec import Json
from ..errors import PluginUnusable, Pointer
from ..expression import Prompt, Text, suggest
from ..provider import Question
from ..running import Context, Known
from ..step import Finding, Outcome, Replay, Step, StepError
from ..target import Target
from . import _ai_toolset, _asks, _guard
from ._ai_toolset import Toolset
from ._guard import Guard


class Ai(Step, frozen=True, kw_only=True):
    """Ask a model one question, which it may answer with the help of tools. An answer that is cut, empty, refused or
    does not fit `schema` fails the step."""

    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = False
    sinks: ClassVar[frozenset[str]] = frozenset({"tools.mcp.env", "tools.mcp.headers"})

    model: Annotated[Text, Meta(description="The model as `provider:name`.", examples=["demo:echo", "openai:gpt-5"])]
    prompt: Annotated[Prompt | None, Meta(description="The question.")] = None
    prompt_file: Annotated[
        PromptFile | None,
        Meta(
            description="A file with the question, from the folder of the workflow file; its text is a template too.",
            examples=["prompts/review.md"],
        ),
    ] = None
    system: Annotated[Prompt | None, Meta(description="Instructions that stand before the question.")] = None
    schema: Annotated[
        dict[str, Any] | None, Meta(description="A JSON Schema: the answer is data of this shape, not text.")
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="How freely the model chooses its words.")
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The longest answer; a longer one fails the step.")
    ] = None
    reask: Annotated[
        int, Meta(ge=0, le=10, description="How often to ask again when the answer does not fit `schema`.")
    ] = 2
    tools: Annotated[
        tuple[Toolset, ...],
        Meta(
            description="What the model may use: tools of MCP servers, by name, and workflows.",
            examples=[[{"mcp": {"command": ["uvx", "mcp-server-time"]}, "tools": ["get_current_time"]}]],
        ),
    ] = ()
    max_tool_calls: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="How often it may use them in an attempt, 10 times by default; more fails the step."),
    ] = None
    guard: Annotated[
        bool | Guard | None,
        Meta(
            description="Whether what is inserted into the prompt, and what tools give, is cleaned of the usual "
            "tricks, and the answer looked at; off unless given.",
            examples=[True],
        ),
    ] = None

    def needs_loop(self) -> bool:
        """A real service or a server is waited for; the built-in one answers at once."""
        literal = self.model.text.startswith("demo:") and "${{" not in self.model.text
        return not literal or any(one.mcp is not None for one in self.tools)

    def spawning(self) -> bool:
        """An MCP server may be a program; what the configuration says of it is not known before the run."""
        return any(one.mcp is not None for one in self.tools)

    def replay(self) -> Replay:
        """What is asked can be asked again, what a tool did cannot: as all tools allow."""
        return _ai_toolset.replay(self.tools)

    def called(self) -> tuple[tuple[Pointer, Target], ...]:
        """The workflows among the tools."""
        return _ai_toolset.called(self.tools)

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """The servers, and what the workflows among the tools reach for."""
        return tuple(_ai_toolset.reaches(self.tools))

    def output(self, result: Any) -> Json:
        """The data with `schema`, the text without."""
        return _asks.output(result)

    def shape(self, known: Known) -> dict[str, Any] | None:
        """What `schema` says, or text."""
        return _asks.shape(self.schema)

    def record(self, known: Known) -> dict[str, Any] | None:
        """The answer, what it cost and how it ended."""
        text = {"type": "string"}
        calls = {"calls": _ai_toolset.CALLS} if self.tools else {}
        return _asks.record(self.schema, model=text, finish_reason=text, **calls)

    def check(self) -> tuple[Finding, ...]:
        """A literal model that is spelled as one, of a provider that exists."""
        wrong = _asks.one_prompt("ai", self.prompt, self.prompt_file, "say what the model is asked")
        wrong += (*_ai_toolset.findings(self.tools, self.max_tool_calls), *_guard.findings(self.guard))
        return tuple(wrong) if wrong else self._models()

    def _models(self) -> tuple[Finding, ...]:
        if "${{" in self.model.text:
            return ()
        try:
            service, _ = provider.split(self.model.text.strip())
        except ValueError as error:
            return (Finding(("model",), "TRM330", f"`{self.model.text[:80]}` is no model", str(error)),)
        if service in (*kinds.names("providers"), *provider.SERVICES):
            return ()
        try:
            if provider.added(service) is not None:
                return ()
        except PluginUnusable as error:
            return (Finding(("model",), error.code, error.message, error.hint),)
        near = suggest(service, (*provider.names(), *provider.SERVICES))
        if near is None and provider.NAME.fullmatch(service):
            return ()  # the configuration may have a service of this name
        hint = f"did you mean {near}?" if near else f"there are {', '.join(provider.names())}"
        return (Finding(("model",), "TRM331", f"there is no model provider `{service[:80]}`", hint),)

    def attached(self) -> tuple[tuple[Pointer, PromptFile], ...]:
        """The file of the prompt."""
        return _asks.attached(self.prompt_file)

    def note(self, result: Any) -> str | None:
        """What it consumed; a price that nobody knows is said."""
        unknown = result["usage"].get("cost_usd") is None
        return _asks.note(result) + (", price unknown" if unknown else "")

    async def run(self, ctx: Context) -> Outcome:
        """Ask, let it use its tools, and with a schema ask again until the answer fits."""
        from ._ai_talk import Talk

        model = ctx.text(self.model).strip()
        try:
            service, name = provider.split(model)
        except ValueError as error:
            raise StepError("refused", str(error)) from None
        watch = _guard.watch(self.guard, ctx)
        clean = watch.clean if watch is not None else None
        system = ctx.text(self.system, clean=clean) if self.system is not None else None
        question = Question(
            model=name,
            prompt=ctx.text(_asks.prompt_of(self.prompt, self.prompt_file), clean=clean),
            system=system if watch is None else watch.instructions(system, self.system),
            schema=self.schema,
            temperature=self.temperature,
            max_output_tokens=self.max_output_tokens,
            # Data is for the steps that follow, and nothing to watch; what a guard has not seen yet nobody else sees.
            on_text=None if self.schema is not None or watch is not None else lambda text: ctx.output("model", text),
            priced=ctx.cost_limited,
        )
        if not question.prompt.strip():
            raise StepError("expression", "the prompt is empty")
        account = await ctx.account(service)
        asked = provider.find(service) if account is None else provider.find(service, account)
        if not self.tools:
            return await Talk(asked, model, question, self.reask, ctx, watch=watch).run()
        from ._ai_calls import Desk
        from ._ai_tools import offer

        async with AsyncExitStack() as servers:
            offered = await offer(self.tools, ctx, servers)
            desk = Desk(offered, self.max_tool_calls or _ai_toolset.MOST, ctx, clean)
            question = structs.replace(question, tools=tuple(one.tool for one in offered.values()))
            return await Talk(asked, model, question, self.reask, ctx, desk, watch).run()
