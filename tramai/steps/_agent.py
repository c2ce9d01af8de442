"""What the agent verbs share: their settings, what is wrong with them, and what a command-line agent is given."""

# No annotations from the future here, as in `shell`: msgspec would have to compile their texts.

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from .. import provider, size
from ..attached import PromptFile
from ..codec import Json
from ..errors import Pointer
from ..expression import Prompt, Text
from ..running import Known
from ..step import Finding, Step
from . import _asks, _child_env, _guard
from ._agent_report import Report
from ._guard import Guard

Sandbox = Literal["read-only", "workspace-write", "full-access"]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of an agent is about, every setting rendered."""

    prompt: str
    model: str | None
    schema: dict[str, Any] | None
    cwd: str
    """Where the agent works: an existing folder, absolute."""
    folder: str
    """An empty folder for files of ours; it is removed afterwards."""
    longest: int
    """Bytes of the longest answer."""
    say: Callable[[str], None]
    """Shows a line to those who watch."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent is started, and who reads what it writes."""

    argv: list[str]
    report: Report
    stdin: str | None = None
    env: dict[str, str] = {}
    """Variables that win over all others."""
    names: dict[int, str] = {}
    """What an error calls some of the arguments."""


class Agent(Step, frozen=True, kw_only=True):
    """A command-line agent that works on one prompt by itself."""

    straight: ClassVar[bool] = True
    spawns: ClassVar[bool] = True
    sinks: ClassVar[frozenset[str]] = frozenset({"env"})
    program: ClassVar[str]
    """Its program, which `permits.shell` has to name."""
    install: ClassVar[str]
    """How it is installed, as a command."""
    sign_in: ClassVar[str]
    """What to do when it is not logged in."""
    passes: ClassVar[tuple[str, ...]]
    """Variables of ours by which it finds its login and settings."""

    prompt: Annotated[Prompt | None, Meta(description="What the agent is to do.")] = None
    prompt_file: Annotated[
        PromptFile | None,
        Meta(
            description="A file with the prompt, from the folder of the workflow file; its text is a template too.",
            examples=["prompts/review.md"],
        ),
    ] = None
    cwd: Annotated[
        Text | None,
        Meta(description="Folder in which the agent works, relative to the folder in which the run was started."),
    ] = None
    env: Annotated[dict[str, Text], Meta(description="Environment variables of the agent.")] = {}
    sandbox: Annotated[
        Sandbox, Meta(description="What the agent may do: read, write in its folder too, or everything.")
    ] = "read-only"
    model: Annotated[Text | None, Meta(description="The model, as the agent names it; its own choice otherwise.")] = (
        None
    )
    schema: Annotated[
        dict[str, Any] | None, Meta(description="A JSON Schema: the answer is data of this shape, not text.")
    ] = None
    guard: Annotated[
        bool | Guard | None,
        Meta(
            description="Whether what is inserted into the prompt is cleaned of the usual tricks, and the answer "
            "looked at; off unless given.",
            examples=[True],
        ),
    ] = None
    max_output: Annotated[
        Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern=size.PATTERN)],
        Meta(description="The longest answer: `1MiB` or a number of bytes; a longer one fails the step."),
    ] = "1MiB"

    def check(self) -> tuple[Finding, ...]:
        """One prompt that says something, variables that can be set, a model that the agent can know."""
        found = [*self._prompts(), *_child_env.findings(self.env, ("env",)), *_guard.findings(self.guard)]
        if size.parse(self.max_output) < 1:
            hint = "write a size such as 1MiB"
            found.append(Finding(("max_output",), "TRM314", "`max_output` must be at least one byte", hint))
        if self.model is not None and self.model.constant and (wrong := self.unknown_model(self.model.text)):
            found.append(Finding(("model",), "TRM338", *wrong))
        return tuple(found)

    def _prompts(self) -> list[Finding]:
        verb = type(self).__name__.lower()
        return _asks.one_prompt(verb, self.prompt, self.prompt_file, "say what the agent is to do")

    def unknown_model(self, model: str) -> tuple[str, str] | None:
        """Message and hint, if a model is named as no agent does it."""
        service, colon, name = model.strip().partition(":")
        if not model.strip():
            return "the name of the model is empty", "leave `model` out to let the agent choose"
        if colon and service in (*provider.SERVICES, "demo"):
            shown = name.strip()[:60]
            hint = f"write the name alone: {shown}" if service != "demo" else "the built-in model is for `ai` only"
            return f"`{model.strip()[:80]}` is how `ai` names a model, not {self.program}", hint
        return None

    def attached(self) -> tuple[tuple[Pointer, PromptFile], ...]:
        """The file of the prompt."""
        return _asks.attached(self.prompt_file)

    def question(self) -> Prompt:
        """The prompt, wherever it stands."""
        return _asks.prompt_of(self.prompt, self.prompt_file)

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """The program, and the folder in which it may write."""
        program = ("shell", (), self.program)
        if self.sandbox == "read-only":
            return (program,)
        if self.sandbox == "full-access":
            return program, ("write", ("sandbox",), "/")
        if self.cwd is None:
            return program, ("write", ("sandbox",), ".")
        return program, ("write", ("cwd",), self.cwd.text if self.cwd.constant else None)

    def output(self, result: Any) -> Json:
        """The data with `schema`, the text without."""
        return _asks.output(result)

    def shape(self, known: Known) -> dict[str, Any] | None:
        """What `schema` says, or text."""
        return _asks.shape(self.schema)

    def record(self, known: Known) -> dict[str, Any] | None:
        """The answer, what it cost, how it ended and in which session."""
        text, maybe = {"type": "string"}, {"type": ["string", "null"]}
        told = {"model": maybe, "finish_reason": text, "session_id": maybe, "exit_code": {"type": "integer"}}
        return _asks.record(self.schema, **told)

    def note(self, result: Any) -> str | None:
        """What it consumed."""
        return _asks.note(result)

    def command(self, task: Task) -> Command:
        """How the agent is started for a task."""
        raise NotImplementedError


def asking_for_json(prompt: str, schema: dict[str, Any]) -> str:
    """A prompt that says what shape its answer must have."""
    import json

    wanted = json.dumps(schema, ensure_ascii=False)
    return f"{prompt}\n\nAnswer with JSON only, without any text around it, that fits this JSON Schema:\n{wanted}\n"
