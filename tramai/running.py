"""What a step sees of its run: a leaf step its context, a control verb the means to run blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from .codec import Json
from .expression import Condition, Expression, Template, Value
from .interrupt import Interrupt

if TYPE_CHECKING:
    from .asking import Decision, Question
    from .permits import Permits
    from .provider import Account
    from .step import Block, Outcome, Replay, Usage
    from .target import Target

T = TypeVar("T")


class Context(Protocol):
    """What a running leaf step sees of its run."""

    run_id: str
    workflow: str
    path: str
    attempt: int
    policy: Replay
    """What the step's attempts allow, `replay:` included."""
    cwd: str
    """Folder in which the run was started: relative paths of children start here."""
    folder: str | None
    """Folder of the workflow file, None when it has none."""
    deadline: float | None
    """`time.monotonic()` instant at which the attempt must be over."""
    env: Mapping[str, str]
    """The workflow's `env`, rendered."""
    permits: tuple[Permits, ...]
    """The workflow's `permits` and those of its callers: each of them must allow what is reached for."""
    servers: Mapping[str, Any]
    """MCP servers of the configuration, by name: each as a workflow file would give it."""
    http: Mapping[str, Any]
    """`[http]` of the configuration: how requests leave this machine."""
    cost_limited: bool
    """The run, or one that called it, may cost no more than it is allowed."""
    interrupt: Interrupt
    hidden: tuple[bytes, ...]
    """Values that must not reach a log file."""
    hurry: Interrupt
    """Set when children are to be killed at once, without the time they are given otherwise."""

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt and resume of this step."""
        ...

    @property
    def traceparent(self) -> str | None:
        """Where the attempt stands in a trace (W3C Trace Context), for children and servers; None when nobody asks."""
        ...

    @property
    def log_path(self) -> str | None:
        """File for everything a child writes, owner-only; None when the run keeps no logs."""
        ...

    def text(self, source: Template, *, clean: Callable[[str], str] | None = None) -> str:
        """Render to text (None is an error, lists and maps become JSON); `clean` gets each value that is inserted."""
        ...

    def value(self, source: Expression | Template | Value) -> Any:
        """Render to a native JSON value."""
        ...

    def value_with(self, source: Expression | Template | Value, names: Mapping[str, Any]) -> Any:
        """Render with further names in scope, such as the `result` that a field of `Step.sees` speaks of."""
        ...

    def test(self, condition: Condition) -> bool:
        """Evaluate a condition; anything but a real boolean is an error."""
        ...

    def now(self) -> float:
        """Wall time, epoch seconds, from the run's clock."""
        ...

    async def account(self, name: str) -> Account | None:
        """What the configuration says about a model service, its key fetched; StepError where that is not to be had."""
        ...

    async def once(self, make: Callable[[], Json]) -> Any:
        """The value `make` gave the first time this step ran: journaled, the same on every attempt and resume."""
        ...

    async def decision(self, make: Callable[[], Question]) -> tuple[Question, Decision | None]:
        """What people decided on a question, None while it is open.

        `make` is called when it is asked: the first time, and again after an attempt that failed by it.
        """
        ...

    async def blocking(self, work: Callable[[], T], *, grace: float = 60.0) -> T:
        """Run blocking code that watches `self.interrupt`: in place when nothing else can run, else on a thread.

        When the attempt is cancelled the interrupt is set and the code has `grace` seconds to end by itself.
        """
        ...

    def output(self, stream: str, text: str) -> None:
        """Show a piece of a child's output to whoever watches (redacted, lossy)."""
        ...

    async def call(
        self, target: Target, given: dict[str, Any], secrets: Mapping[str, str], *, afresh: bool = False
    ) -> Outcome:
        """Carry out another workflow with these inputs; `secrets` maps its names for some to ours.

        The one call of a step is gone on with by its next attempt. One of several is made `afresh`, and cannot wait for
        long or for people.
        """
        ...

    def spent(self, usage: Usage) -> None:
        """Count what the attempt has used so far against the limits of the run; LimitReached when it may not go on."""
        ...

    def redacted(self, value: Json) -> Json:
        """The value without the secrets in it, for what leaves the run by no sink."""
        ...

    def signal(self, name: str, **attributes: str | int | float | None) -> None:
        """Tell those who listen what happened: `shell.completed` with ids, counts, sizes, codes or digests, no more."""
        ...


class Walk(Protocol):
    """What a control verb sees: its own place, and the means to run blocks."""

    path: str
    limit: int
    """The workflow's `limits.max_parallel_branches`."""

    def value(self, source: Expression | Template | Value) -> Any:
        """Render to a native JSON value."""
        ...

    def test(self, condition: Condition) -> bool:
        """Evaluate a condition; anything but a real boolean is an error."""
        ...

    async def once(self, make: Callable[[], Json]) -> Any:
        """The value `make` gave the first time: journaled, the same after every resume."""
        ...

    async def block(self, block: Block, *, key: str, names: Mapping[str, Json], visible: bool) -> dict[str, Json]:
        """Run a block in order: `{id: output}`. `visible`: its steps may be read after the container."""
        ...

    def value_with(self, source: Expression | Template | Value, names: Mapping[str, Any]) -> Any:
        """Render with further names in scope."""
        ...

    async def turn(self, block: Block, *, number: int, names: Mapping[str, Json]) -> Turn:
        """Run a block once more, as turn `number` of a loop."""
        ...

    async def pause(self, seconds: float, *, after: int) -> None:
        """Wait after a turn; the instant at which the next one begins is journaled."""
        ...

    async def fan_out(
        self, jobs: Sequence[Job], *, window: int, fail_fast: bool, collect: bool, in_order: bool = False
    ) -> tuple[list[dict[str, Json]], int]:
        """Run a block per job, at most `window` at once, in order of start and of result; and how many failed.

        A failed job raises after its siblings ended (`fail_fast`: after cancelling them), or with `collect`
        leaves `{"error": {…}}` in its place. A suspended job stops no sibling, but with `in_order` nothing starts
        after it.
        """
        ...


class Turn(Protocol):
    """One turn of a loop that is over."""

    outputs: dict[str, Json]
    """`{id: output}` of its steps."""

    async def test(self, condition: Condition) -> bool:
        """Evaluate a condition that sees the steps of this turn; journaled, so that a resume decides the same."""
        ...


class Job(msgspec.Struct, frozen=True):
    """One branch or item of a fan-out."""

    key: str
    block: Block
    names: dict[str, Any]


class Known(Protocol):
    """What a verb may ask before the run, to say the shape of its output; `{}` is a value of which nothing is known."""

    def value(self, source: Template | Value) -> dict[str, Any]:
        """A JSON Schema of what a setting will be evaluated to."""
        ...

    def block(self, block: Block) -> dict[str, Any]:
        """A JSON Schema of `{id: output}` of a block."""
        ...
