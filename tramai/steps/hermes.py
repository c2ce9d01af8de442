"""`hermes`: let Hermes Agent work on a prompt."""

# No annotations from the future here, as in `shell`: msgspec would have to compile their texts.

import json
import os
from typing import Any, ClassVar

from ..running import Context
from ..step import Outcome, StepError, Usage
from ._agent import Agent, Command, Task, asking_for_json
from ._agent_report import Report, count, said
from ._spawn import LONGEST

_CAREFUL = "file,web,vision,todo"
"""Toolsets without a terminal; the files that `file` may write are limited by a variable."""
_LONGEST = LONGEST - len("--oneshot=") - 1
"""Bytes of a prompt."""
_LARGEST_USAGE = 1 << 20
_NOTHING = "⚠️ No reply:"


class Hermes(Agent, frozen=True, kw_only=True):
    """Let Hermes Agent (`hermes -z`) work on a prompt in a folder. What it prints is the answer. What it may do is
    limited by the tools that it is given."""

    program: ClassVar[str] = "hermes"
    install: ClassVar[str] = "pip install hermes-agent"
    sign_in: ClassVar[str] = "run `hermes setup`, or give the key of its provider by `env`"
    passes: ClassVar[tuple[str, ...]] = ("HERMES_HOME",)

    def command(self, task: Task) -> Command:
        """`hermes --oneshot=PROMPT`, which takes it no other way, and a file for what it used."""
        prompt = task.prompt if task.schema is None else asking_for_json(task.prompt, task.schema)
        if (size := len(prompt.encode("utf-8", "replace"))) > _LONGEST:
            what = f"the prompt has {size:,} bytes; hermes takes it as an argument, of at most {_LONGEST:,}"
            hint = "write what is long to a file, and name the file in the prompt"
            raise StepError("limit", what, hint=hint, details={"size": size, "limit": _LONGEST})
        if "\0" in prompt:
            what = "the prompt holds a NUL character, and hermes takes it as an argument, which that would end"
            raise StepError("refused", what, hint="take it out where the text comes from")
        usage = os.path.join(task.folder, "usage.json")
        argv, env = ["hermes", f"--oneshot={prompt}", "--usage-file", usage], {}
        if task.model is not None:
            argv += ["--model", task.model]
        if self.sandbox != "full-access":
            argv += ["--toolsets", _CAREFUL]
            nowhere = os.path.join(task.folder, "nothing")
            env = {"HERMES_WRITE_SAFE_ROOT": task.cwd if self.sandbox == "workspace-write" else nowhere}
        return Command(argv=argv, names={1: "the prompt"}, env=env, report=_Report(usage, task))

    async def run(self, ctx: Context) -> Outcome:
        """Start it, and judge what it told."""
        from ._agent_run import carry_out

        return await carry_out(self, ctx)


class _Report(Report):
    """stdout is the answer, also when that is an error; only the file of the usage tells the two apart."""

    def __init__(self, path: str, task: Task) -> None:
        super().__init__(task.longest, task.say)
        self._path = path
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        # One byte more than an answer may have, and its line end.
        self._kept += data[: max(0, self.longest + 2 - len(self._kept))]

    def close(self) -> None:
        text = self._kept.decode("utf-8", "replace").removesuffix("\n")
        told = self._told()
        if told is None:
            return
        self.session_id, self.model = said(told, "session_id"), said(told, "model")
        if "input_tokens" in told and told["input_tokens"] is not None:
            read = count(told, "input_tokens", "cache_read_tokens", "cache_write_tokens")
            self.usage = Usage(input_tokens=read, output_tokens=count(told, "output_tokens"), cost_usd=_price(told))
        if told.get("failed") is not False:
            self.failure = text or said(told, "failure") or "no reason told"
        elif told.get("completed") is not True:
            self.finish_reason = "length"
        elif text.startswith(_NOTHING):
            self.over = True
        else:
            self.over, self.finish_reason = True, "completed"
            self.answer(text)
            self.say(self.text)

    def _told(self) -> dict[str, Any] | None:
        try:
            with open(self._path, "rb") as file:
                told = json.loads(file.read(_LARGEST_USAGE))
        except (OSError, ValueError, RecursionError):
            return None
        return told if isinstance(told, dict) else None


def _price(told: dict[str, Any]) -> float | None:
    """What it cost; a price that it does not know is told as 0."""
    cost = told.get("estimated_cost_usd")
    known = told.get("cost_status") not in (None, "unknown") and type(cost) in (int, float)
    return float(cost) if known and cost >= 0 else None  # type: ignore[arg-type, operator]
