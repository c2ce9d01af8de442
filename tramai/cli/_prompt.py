"""Asks somebody at the terminal what gates wait with, once nothing else of the run is left to do."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import deciding
from ..clock import SystemClock
from ..codec import Json
from ..deciding import Open
from ..errors import TramaiError
from . import _questions
from ._advice import short
from ._terminal import safe
from ._values import scalar
from ._who import me

if TYPE_CHECKING:
    from ..interrupt import Interrupt
    from ..store import Store
    from ._session import Session

GLANCE = 1.0
"""Seconds between looks whether somebody else has decided."""


class Elsewhere(Exception):
    """There is nothing to ask any more: somebody else decided, the time is over, or the run must stop."""


def possible(session: Session) -> bool:
    """Whether somebody sits at a terminal and may be asked."""
    if session.json or session.flags.get("no_input") or os.environ.get("CI"):
        return False
    try:
        return session.err.tty and os.isatty(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        return False


class Prompt:
    """A `deciding.Answer`: asks one question after the other; whoever presses Enter leaves it for later."""

    def __init__(self, session: Session, store: Store, interrupt: Interrupt, pause: Callable[[], None]) -> None:
        self._session = session
        self._terminal = session.err
        self._store = store
        self._interrupt = interrupt
        self._pause = pause
        self._typed = b""

    def __call__(self, questions: tuple[Open, ...]) -> None:
        """Ask until the first that is decided: the run goes on from there, and comes back with the others."""
        self._pause()
        run_id = self._session.run_id or ""
        for one in questions:
            try:
                if self._ask(run_id, one, questions):
                    return
            except Elsewhere:
                return
            except TramaiError as error:
                self._terminal.line(f"  not stored: {safe(error.message)}")
                if error.hint:
                    self._terminal.line(f"    {safe(error.hint)}")

    def _ask(self, run_id: str, one: Open, all_: Sequence[Open]) -> bool:
        """Show a question and read the decision; whether one was stored."""
        terminal, question = self._terminal, one.question
        view = _questions.view(one)
        terminal.line(f"\n{terminal.paint('?', 'yellow')} {safe(one.path)}")
        for line in _questions.described(terminal, view, 2, time.time()):
            terminal.line(line)
        by = me()
        if question.approvers and by not in question.approvers:
            terminal.line(f"  {safe(by)} may not decide here: it waits for the others")
            return False
        while True:
            word = self._read("  approve? [y]es, [n]o, Enter: later ", run_id, all_).lower()
            if word in ("y", "yes", "n", "no"):
                break
            if not word:
                return False
        data: dict[str, Json] = self._form(run_id, one, all_) if word.startswith("y") else {}
        comment = self._read("  comment (Enter: none): ", run_id, all_)
        decision = "approved" if word.startswith("y") else "rejected"
        done = deciding.decide(
            self._store,
            run_id,
            one.path,
            decision=decision,
            by=by,
            comment=comment or None,
            data=data,
            clock=SystemClock(),
        )
        if done.open.decision is None:
            have, need, run = done.open.approvals, question.min, short(run_id)
            said = f"  {have} of {need} approvals; others decide with: tramai approve {run}"
            terminal.line(terminal.typed(said))
        return True

    def _form(self, run_id: str, one: Open, all_: Sequence[Open]) -> dict[str, Json]:
        """The fields of an approval, each asked until it fits."""
        form = one.question.form or {}
        required = form.get("required", ())
        given: dict[str, Json] = {}
        for name, field in _questions.fields(form):
            default = f" [{scalar(field['default'])}]" if "default" in field else ""
            needed = " (required)" if name in required else ""
            while True:
                text = self._read(f"  {safe(name)}{needed}{default}: ", run_id, all_)
                if not text and not (needed and not default):
                    break
                try:
                    deciding.read_data({**form, "required": []}, {name: text}, one.path)
                except deciding.InvalidAnswer as error:
                    self._terminal.line(f"    {safe(str(error.details['what']))}")
                    continue
                given[name] = text
                break
        return given

    def _read(self, prompt: str, run_id: str, all_: Sequence[Open]) -> str:
        """A line that is typed. Elsewhere, when meanwhile there is nothing left to ask; its end means later."""
        self._terminal.write(prompt)
        while b"\n" not in self._typed:
            ready, _, _ = select.select([sys.stdin.fileno(), self._interrupt.fileno()], [], [], GLANCE)
            if self._interrupt.is_set:
                self._terminal.line()
                raise Elsewhere
            if ready:
                more = os.read(sys.stdin.fileno(), 1 << 16)
                if not more:
                    self._terminal.line()
                    raise Elsewhere
                self._typed += more
            elif self._is_decided(run_id, all_):
                self._terminal.line("\n  decided meanwhile")
                raise Elsewhere
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def _is_decided(self, run_id: str, all_: Sequence[Open]) -> bool:
        now = time.time()
        waiting = {(one.path, one.question.number) for one in all_}
        return any(
            (one.decision is not None or one.late(now)) and (one.path, one.question.number) in waiting
            for one in deciding.look(self._store, run_id)
        )
