"""`claude`: let Claude Code work on a prompt."""

# No annotations from the future here, as in `shell`: msgspec would have to compile their texts.

import json
import re
from typing import Any, ClassVar

from ..running import Context
from ..step import Outcome, StepError, Usage
from ._agent import Agent, Command, Task, asking_for_json
from ._agent_report import EventReport, brief, count, part, said

_READING = ("--tools", "Read,Glob,Grep", "--permission-mode", "dontAsk", "--strict-mcp-config")
_FLAGS = {
    "read-only": _READING,
    "workspace-write": ("--permission-mode", "acceptEdits"),
    "full-access": ("--dangerously-skip-permissions",),
}


class Claude(Agent, frozen=True, kw_only=True):
    """Let Claude Code (`claude -p`) work on a prompt in a folder. Its last message is the answer. What it may do is
    limited by the tools and permissions that it is given."""

    program: ClassVar[str] = "claude"
    install: ClassVar[str] = "npm install -g @anthropic-ai/claude-code"
    sign_in: ClassVar[str] = "run `claude` and log in, or give ANTHROPIC_API_KEY by `env`"
    passes: ClassVar[tuple[str, ...]] = ("CLAUDE_CONFIG_DIR",)

    def command(self, task: Task) -> Command:
        """`claude -p` with a stream of events, the prompt by stdin."""
        prompt = task.prompt
        if prompt.lstrip().startswith("/") and not self.question().text.lstrip().startswith("/"):
            what = "the prompt begins with `/` by a value, which Claude Code would take as one of its commands"
            raise StepError("refused", what, hint="begin the prompt with words of your own")
        argv = ["claude", "-p", "--output-format", "stream-json", "--verbose", *_FLAGS[self.sandbox]]
        names = {}
        if task.model is not None:
            argv += ["--model", task.model]
        if task.schema is not None:
            if task.schema.get("type") == "object":
                names = {len(argv) + 1: "`schema`"}
                argv += ["--json-schema", json.dumps(task.schema)]
            else:  # it is a tool's input there, which is always an object
                prompt = asking_for_json(prompt, task.schema)
        report = _Report(task.longest, task.say)
        return Command(argv=argv, names=names, stdin=prompt, report=report, env={"DISABLE_AUTOUPDATER": "1"})

    async def run(self, ctx: Context) -> Outcome:
        """Start it, and judge what it told."""
        from ._agent_run import carry_out

        return await carry_out(self, ctx)


class _Report(EventReport):
    answers = re.compile(rb'^\s*\{\s*"type"\s*:\s*"result"')
    _message: str | None = None
    _last = Usage()

    def event(self, kind: str, event: dict[str, Any]) -> None:
        self.session_id = said(event, "session_id") or self.session_id
        if kind == "system":
            self.model = said(event, "model") or self.model
        elif kind == "assistant":
            self._assistant(part(event, "message"))
        elif kind == "result":
            self._result(event)

    def _assistant(self, message: dict[str, Any]) -> None:
        self._count(message)
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            kind = said(block, "type")
            if kind == "text":
                self.say(said(block, "text") or "")
            elif kind == "tool_use":
                given = part(block, "input")
                what = next((value for value in given.values() if isinstance(value, str)), "")
                self.say(f"{brief(said(block, 'name') or 'tool')}: {brief(what)}")

    def _count(self, message: dict[str, Any]) -> None:
        """What was used so far, for a run that is stopped: a message may come in several events with one usage."""
        if (used := _usage(part(message, "usage"))) is None:
            return
        before, same = self.usage or Usage(), said(message, "id") == self._message
        self.usage = Usage(
            input_tokens=before.input_tokens + used.input_tokens - (self._last.input_tokens if same else 0),
            output_tokens=before.output_tokens + used.output_tokens - (self._last.output_tokens if same else 0),
        )
        self._message, self._last = said(message, "id"), used

    def _result(self, event: dict[str, Any]) -> None:
        text, subtype = said(event, "result") or "", said(event, "subtype") or ""
        self.finish_reason = said(event, "stop_reason") or "completed"
        status = event.get("api_error_status")
        self.status = status if type(status) is int else None
        # The subtype says success also when the request was refused.
        failed = event.get("is_error") is not False or subtype.startswith("error")
        errors = event.get("errors")
        told = "; ".join(str(one) for one in errors[:5]) if isinstance(errors, list) else ""
        self.failure = (text or told or subtype or "no reason told") if failed else None
        self.over = not failed
        if not failed:
            self.answer(text)
            self.value = event.get("structured_output")
        cost = event.get("total_cost_usd")
        used = _total(part(event, "modelUsage")) or _usage(part(event, "usage")) or self.usage
        if used is not None:
            price = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None
            self.usage = Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost_usd=price)
        denied = event.get("permission_denials")
        for one in denied[:20] if isinstance(denied, list) else ():
            self.say(f"not permitted: {brief(said(one, 'tool_name') or 'a tool')}")


def _usage(usage: dict[str, Any]) -> Usage | None:
    """Tokens of a message; what was read from the cache and written to it counts too."""
    read = count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return Usage(input_tokens=read, output_tokens=count(usage, "output_tokens")) if usage else None


def _total(models: dict[str, Any]) -> Usage | None:
    """Tokens of all models together, helpers included."""
    told = [one for one in models.values() if isinstance(one, dict)]
    read = sum(count(one, "inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens") for one in told)
    return Usage(input_tokens=read, output_tokens=sum(count(one, "outputTokens") for one in told)) if told else None
