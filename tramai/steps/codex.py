"""`codex`: let the Codex CLI work on a prompt."""

# No annotations from the future here, as in `shell`: msgspec would have to compile their texts.

import json
import os
import re
from typing import Any, ClassVar

from ..running import Context
from ..step import Outcome, Usage
from ._agent import Agent, Command, Task, asking_for_json
from ._agent_report import EventReport, brief, count, part, said


class Codex(Agent, frozen=True, kw_only=True):
    """Let the Codex CLI (`codex exec`) work on a prompt in a folder. Its last message is the answer. What it may do is
    limited by its own sandbox."""

    program: ClassVar[str] = "codex"
    install: ClassVar[str] = "npm install -g @openai/codex"
    sign_in: ClassVar[str] = "run `codex login`, or give CODEX_API_KEY by `env`"
    passes: ClassVar[tuple[str, ...]] = ("CODEX_HOME",)

    def command(self, task: Task) -> Command:
        """`codex exec --json`, the prompt by stdin."""
        argv = ["codex", "exec", "--json", "--color", "never", "--skip-git-repo-check"]
        argv += ["--sandbox", "danger-full-access" if self.sandbox == "full-access" else self.sandbox]
        if task.model is not None:
            argv += ["--model", task.model]
        prompt = task.prompt
        if task.schema is not None:
            from ._codex_schema import strict

            wanted, whole = strict(task.schema)
            if wanted is not None:
                path = os.path.join(task.folder, "schema.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(wanted, file)
                argv += ["--output-schema", path]
            if not whole:
                prompt = asking_for_json(prompt, task.schema)
        return Command(argv=[*argv, "-"], stdin=prompt, report=_Report(task.longest, task.say))

    async def run(self, ctx: Context) -> Outcome:
        """Start it, and judge what it told."""
        from ._agent_run import carry_out

        return await carry_out(self, ctx)


class _Report(EventReport):
    answers = re.compile(rb'"type"\s*:\s*"agent_message"')
    _complaint: str | None = None

    def event(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "thread.started":
            self.session_id = said(event, "thread_id")
        elif kind == "turn.completed":
            self.over, self.failure, self.finish_reason = True, None, "completed"
            self._spent(part(event, "usage"))
        elif kind == "turn.failed":
            self.over, self.failure = (
                False,
                said(part(event, "error"), "message") or self._complaint or "no reason told",
            )
        elif kind == "error":  # often only a new attempt to connect
            self._complaint = said(event, "message")
            self.say(brief(self._complaint or "error"))
        elif kind in ("item.started", "item.completed"):
            self._item(part(event, "item"), kind == "item.completed")

    def close(self) -> None:
        super().close()
        if not self.over and self.failure is None:
            self.failure = self._complaint

    def _spent(self, usage: dict[str, Any]) -> None:
        # What came from the cache is part of input_tokens here.
        self.usage = Usage(input_tokens=count(usage, "input_tokens"), output_tokens=count(usage, "output_tokens"))

    def _item(self, item: dict[str, Any], completed: bool) -> None:
        kind = said(item, "type")
        if kind == "agent_message" and completed:
            self.answer(said(item, "text") or "")
            self.say(self.text)
        elif kind == "command_execution" and not completed:
            self.say(f"$ {brief(said(item, 'command') or '')}")
        elif kind == "mcp_tool_call" and not completed:
            self.say(f"tool: {brief(said(item, 'server') or '')} {brief(said(item, 'tool') or '')}")
        elif kind == "web_search" and completed:
            self.say(f"search: {brief(said(item, 'query') or '')}")
        elif kind == "file_change" and completed:
            changes = item.get("changes")
            for change in changes[:20] if isinstance(changes, list) else ():
                self.say(f"{brief(said(change, 'kind') or 'change')}: {brief(said(change, 'path') or '')}")
        elif kind == "error" and completed:  # a warning, such as a model that it knows nothing of
            self.say(brief(said(item, "message") or "warning"))
