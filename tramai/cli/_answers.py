"""Gates that are answered beforehand: `--approve STEP=yes`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import TramaiError, UsageError
from ..event import Event, GateAsked, RunStarted
from ..paths import step_id
from ._terminal import safe

if TYPE_CHECKING:
    from ..plan import Plan
    from ..store import Store
    from ._session import Session

_WORDS = {"yes": "approved", "no": "rejected"}


class Answers:
    """An observer that decides what a gate asks, as soon as it asks. What is refused is said, and the gate waits."""

    def __init__(self, session: Session, store: Store, given: Iterable[str]) -> None:
        self._session = session
        self._store = store
        self._run_id = ""
        self._decisions = dict(_one(text) for text in given)

    def check(self, plan: Plan) -> None:
        """Refuse an answer to what no gate of the workflow asks."""
        from ..expression import suggest

        asking = [node.id for node in plan.nodes.values() if getattr(node.step, "ask", None) is not None]
        for step in self._decisions:
            if step_id(step) not in asking:
                near = suggest(step, asking)
                known = f"gates that ask: {', '.join(asking)}" if asking else "no gate of this workflow asks anybody"
                hint = f"did you mean '{near}'?" if near else known
                raise UsageError(what=f"--approve: no gate '{step}' asks anybody", hint=hint)

    def open(self, run_id: str) -> None:
        """Decide what a run that waits has asked already."""
        from .. import deciding

        self._run_id = run_id
        for one in deciding.look(self._store, run_id) if self._decisions else ():
            if one.decision is None:
                self._decide(one.path)

    def __call__(self, event: Event) -> None:
        """See one event."""
        if isinstance(event, RunStarted):
            self._run_id = event.run_id
        elif isinstance(event, GateAsked):
            self._decide(event.path)

    def _decide(self, path: str) -> None:
        from .. import deciding
        from ..clock import SystemClock
        from ._who import me

        decision = self._decisions.get(path) or self._decisions.get(step_id(path))
        if decision is None:
            return
        try:
            deciding.decide(
                self._store,
                self._run_id,
                path,
                decision=decision,
                by=me(),
                comment="given with --approve",
                clock=SystemClock(),
            )
        except TramaiError as error:
            self._session.err.line(f"warning: --approve {safe(path)}: {safe(error.message)}")


def _one(text: str) -> tuple[str, str]:
    step, sign, word = text.rpartition("=")
    if not sign or not step or word not in _WORDS:
        raise UsageError(what=f"--approve: '{text}' is no answer", hint="write STEP=yes or STEP=no")
    return step, _WORDS[word]
