"""What a step is: settings as a Struct, behaviour as one async method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar

import msgspec
from msgspec import Meta

from .asking import Decision, Question
from .codec import Json
from .duration import Duration
from .errors import Pointer
from .expression import Condition, Expression, Template, Value
from .interrupt import Interrupt

if TYPE_CHECKING:
    from .permits import Permits

T = TypeVar("T")


class Replay(StrEnum):
    """What may be done with an attempt that started and whose end was not seen."""

    REPLAYABLE = "replayable"
    IDEMPOTENT = "idempotent"
    NON_REPLAYABLE = "non_replayable"


class Retry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a failed attempt is tried again. `max_attempts` counts all attempts, the first included."""

    max_attempts: Annotated[int, Meta(description="All attempts, the first included: 1 to 1000.")] = 1
    delay: Annotated[Duration, Meta(description="The pause before the second attempt.")] = Duration(1.0)
    backoff: Annotated[float, Meta(description="Each pause is the one before, times this.")] = 1.0
    max_delay: Annotated[Duration, Meta(description="The longest pause.")] = Duration(300.0)
    jitter: Annotated[float, Meta(description="Each pause is longer or shorter by up to this fraction of it.")] = 0.1
    on: Annotated[
        tuple[str, ...],
        Meta(
            description="Only these types of error are tried again; all, if none are named.",
            examples=[["timeout", "http.5xx"]],
        ),
    ] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt consumed. `cost_usd` None means the price is not known, not that it was free."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class Done(msgspec.Struct, frozen=True):
    """The step succeeded with this full record (`result`)."""

    result: Json
    usage: Usage | None = None


class Suspend(msgspec.Struct, frozen=True):
    """The step cannot end before `until` (epoch seconds; None: until somebody decides).

    `waiting`: somebody may end it earlier, by a decision.
    """

    until: float | None = None
    waiting: bool = False


class Reject(msgspec.Struct, frozen=True):
    """A gate is closed: the run ends as failed, with error type `rejected`; `details` go into the `error` record."""

    reason: str
    details: dict[str, Any] = {}


Outcome = Done | Suspend | Reject


class Finding(msgspec.Struct, frozen=True):
    """Something wrong with a verb's settings that a schema cannot say; `pointer` starts at the settings.

    `range`: the characters concerned, where the pointer leads to a text.
    """

    pointer: Pointer
    code: str
    message: str
    hint: str | None = None
    severity: str = "error"
    range: tuple[int, int] | None = None
    fix: dict[str, Any] | None = None
    """Settings that would mend it, where that is mechanical: new values, and keys to add to a mapping."""


ERROR_TYPES = [
    "timeout",
    "network",
    "rate_limited",
    "auth",
    "exit",
    "invalid_output",
    "limit",
    "cancelled",
    "rejected",
    "unknown_outcome",
    "expression",
    "refused",
    "truncated",
    "http",
]
"""First words of the closed error types; `http.404`, `http.4xx`, `exit.3` refine them, plugins add `plugin.*`."""


class StepError(Exception):
    """A failed attempt: `type` is one of the closed error types, `details` go into the `error` record.

    `retry_after`: seconds the other side asked to wait. `hint`: what to do, for people. Never holds a secret.
    """

    def __init__(
        self,
        type: str,
        message: str,
        *,
        hint: str | None = None,
        retry_after: float | None = None,
        details: Mapping[str, Json] | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.type = type
        self.message = message
        self.hint = hint
        self.retry_after = retry_after
        self.details = dict(details or {})
        self.usage = usage
        super().__init__(message)


def matches(error_type: str, patterns: Sequence[str]) -> bool:
    """Whether an error type is one of these (`retry.on`, `catch.on`).

    A word covers what refines it (`exit`: `exit.3`; `http`: `http.404`), `http.4xx` a class of statuses, `plugin.*`
    whatever follows. `rate_limited` covers `http.429`, `auth` covers `http.401` and `http.403`.
    """
    return any(_covers(pattern, error_type) for pattern in patterns)


_ALSO = {"rate_limited": ("http.429",), "auth": ("http.401", "http.403")}


def _covers(pattern: str, error_type: str) -> bool:
    if pattern == error_type or error_type in _ALSO.get(pattern, ()):
        return True
    if pattern.endswith(".*"):
        return error_type.startswith(pattern[:-1])
    if pattern.startswith("http.") and pattern.endswith("xx"):
        return error_type.startswith(pattern[:-2]) and len(error_type) == len(pattern)
    return error_type.startswith(pattern + ".")


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
    def log_path(self) -> str | None:
        """File for everything a child writes, owner-only; None when the run keeps no logs."""
        ...

    def text(self, source: Template) -> str:
        """Render to text (None is an error, lists and maps become JSON)."""
        ...

    def value(self, source: Expression | Template | Value) -> Any:
        """Render to a native JSON value."""
        ...

    def test(self, condition: Condition) -> bool:
        """Evaluate a condition; anything but a real boolean is an error."""
        ...

    def now(self) -> float:
        """Wall time, epoch seconds, from the run's clock."""
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

    async def fan_out(
        self, jobs: Sequence[Job], *, window: int, fail_fast: bool, collect: bool, in_order: bool = False
    ) -> tuple[list[dict[str, Json]], int]:
        """Run a block per job, at most `window` at once, in order of start and of result; and how many failed.

        A failed job raises after its siblings ended (`fail_fast`: after cancelling them), or with `collect`
        leaves `{"error": {…}}` in its place. A suspended job stops no sibling, but with `in_order` nothing starts
        after it.
        """
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


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one verb. The file is named as the verb, the class as the file."""

    scalar: ClassVar[str | None] = None
    """The field that the scalar form (`shell: make test`) sets."""
    default_replay: ClassVar[Replay] = Replay.NON_REPLAYABLE
    straight: ClassVar[bool] = False
    """`run` never waits on an event loop, only in `ctx.blocking`."""
    spawns: ClassVar[bool] = False
    """Starts child processes."""
    sinks: ClassVar[frozenset[str]] = frozenset()
    """Fields in which a secret may stand."""
    answers: ClassVar[bool] = True
    """Gives its result in one go, so that `verify` may ask it."""

    def replay(self) -> Replay:
        """The replay policy of these settings, unless the step says otherwise."""
        return self.default_replay

    def pure(self) -> bool:
        """No effect outside and cheap: may be computed again for nothing."""
        return False

    def check(self) -> tuple[Finding, ...]:
        """What is wrong with these settings beyond their schema."""
        return ()

    def shape(self, known: Known) -> dict[str, Any] | None:
        """A JSON Schema of the default output, as far as these settings say it: uses are checked before the run."""
        schema = getattr(self, "schema", None)
        return schema if isinstance(schema, dict) else None

    def record(self, known: Known) -> dict[str, Any] | None:
        """The same of the full record (`result`)."""
        return None

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """What it reaches for outside, for `permits`: see `reach.Reach`."""
        return ()

    def needs_loop(self) -> bool:
        """Whether these settings need an event loop; default: not `straight`."""
        return not self.straight

    def output(self, result: Any) -> Json:
        """What people want of the full record: the default `output`."""
        return result  # type: ignore[no-any-return]

    def note(self, result: Any) -> str | None:
        """A few words about the full record for those who watch: a status, a size, what it cost."""
        return None

    async def run(self, ctx: Context) -> Outcome:
        """Do the step once."""
        raise NotImplementedError


class Control(Step, frozen=True, kw_only=True):
    """A verb that holds blocks of other steps and decides which of them run."""

    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = True
    answers: ClassVar[bool] = False

    def blocks(self) -> tuple[tuple[Pointer, str, Block], ...]:
        """Every block: its pointer below the verb, a label for people, the block."""
        raise NotImplementedError

    def binds(self) -> tuple[str, ...]:
        """Names that its blocks see besides the usual ones: the loop variable, `loop`."""
        return ()

    def visible(self) -> bool:
        """Whether steps inside may be read after the container (through `default` or `.status`)."""
        return False

    async def walk(self, walk: Walk) -> Any:
        """Run the blocks; the full record (`result`)."""
        raise NotImplementedError


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A step in its place: the common keys around one verb's settings."""

    id: str
    verb: str
    step: Step
    at: Pointer
    """Where the step stands in the document."""
    description: str | None = None
    when: Condition | None = None
    retry: Retry | None = None
    timeout: Duration | None = None
    output: Value | None = None
    schema: dict[str, Any] | None = None
    save: dict[str, Value] = {}
    replay_as: Replay | None = None
    """The `replay:` key."""
    verify: Condition | Node | None = None
    """What tells whether an attempt had happened: a condition, or the verb that is asked."""

    @property
    def replay(self) -> Replay:
        """What a crashed attempt allows."""
        return self.replay_as or self.step.replay()


class Block:
    """Steps that run one after another. A class of its own, so that a verb's settings can hold steps."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def walk(self) -> Iterator[Node]:
        """Every node, those inside control verbs included, in order of the file."""
        for node in self.nodes:
            yield node
            if isinstance(node.step, Control):
                for _, _, block in node.step.blocks():
                    yield from block.walk()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """A list of steps."""
        return {"type": "array", "items": {"$ref": "#/$defs/step"}}
