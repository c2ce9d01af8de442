"""What a step is: settings as a Struct, behaviour as one async method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .codec import Json
from .duration import Duration
from .errors import Pointer
from .expression import Condition, Value

if TYPE_CHECKING:
    from .attached import PromptFile
    from .running import Context, Known, Walk
    from .target import Target


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
    when: Annotated[
        Condition | None,
        Meta(
            description="Only while this is true of the `error` is it tried again.",
            examples=["${{ error.exit_code == 75 }}"],
        ),
    ] = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt consumed. `cost_usd` None means the price is not known, not that it was free."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    executions: int = 0
    """Steps that a called workflow has started."""


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


class Redo(msgspec.Struct, frozen=True):
    """The step succeeded with this full record, and the walk goes back to the earlier step that `Step.back` names."""

    result: Json


Outcome = Done | Suspend | Reject | Redo


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


class StepError(Exception):
    """A failed attempt: `type` is one of the closed error types, `details` go into the `error` record.

    `retry_after`: seconds the other side asked to wait. `hint`: what to do, for people. Never holds a secret.
    """

    final: ClassVar[bool] = False
    """It ends the run, whatever its `catch` says."""

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


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one verb. The file is named as the verb, the class as the file."""

    scalar: ClassVar[str | None] = None
    """The field that the scalar form (`shell: make test`) sets."""
    default_replay: ClassVar[Replay] = Replay.NON_REPLAYABLE
    straight: ClassVar[bool] = False
    """`run` never waits on an event loop, only in `ctx.blocking`."""
    spawns: ClassVar[bool] = False
    """Starts child processes, and watches the clock over them itself."""
    alone: ClassVar[bool] = True
    """What it runs may hurt the process it runs in: a worker gives it one that carries nothing else meanwhile."""
    sinks: ClassVar[frozenset[str]] = frozenset()
    """Fields in which a secret may stand."""
    timed: ClassVar[bool] = True
    """An attempt may be given a `timeout`."""
    sees: ClassVar[Mapping[str, dict[str, Any]]] = {}
    """Fields whose expressions see a `result` before the step is over, each with the schema of that."""
    answers: ClassVar[bool] = True
    """Gives its result in one go, so that `verify` may ask it."""
    own: ClassVar[frozenset[str]] = frozenset()
    """Fields that every step says itself: `defaults` cannot give them."""
    edition: ClassVar[int] = 1
    """Of a step that a package adds: one more each time the same settings come to mean something else."""

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

    def called(self) -> tuple[tuple[Pointer, Target], ...]:
        """Other workflow files that the step runs, each with the pointer of the key that names it."""
        return ()

    def attached(self) -> tuple[tuple[Pointer, PromptFile], ...]:
        """Files whose text belongs to these settings, each with the pointer of the key that names it."""
        return ()

    def adopt(self, make: Callable[[type[Step], str], Step | None]) -> Step:
        """These settings, with those of another step that they hold made by `make`: from its class, and their key."""
        return self

    def able(self) -> None:
        """Raise why it cannot be carried out here, before a run goes on; what `check` says holds for files only."""

    def back(self) -> str | None:
        """The id of the earlier step to which the walk may go back from here."""
        return None

    def needs_loop(self) -> bool:
        """Whether these settings need an event loop; default: not `straight`."""
        return not self.straight

    def spawning(self) -> bool:
        """Whether these settings start child processes; default: `spawns`."""
        return self.spawns

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
    alone: ClassVar[bool] = False
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

    def closing(self) -> Mapping[str, Pointer]:
        """Fields that are evaluated at the end of one of its blocks, and so see the steps inside."""
        return {}

    async def walk(self, walk: Walk) -> Any:
        """Run the blocks; the full record (`result`)."""
        raise NotImplementedError


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
            for _, _, block in node.blocks():
                yield from block.walk()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """A list of steps."""
        return {"type": "array", "items": {"$ref": "#/$defs/step"}}


class Catch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do about an error instead of failing. The first clause that fits is taken."""

    on: Annotated[
        tuple[str, ...],
        Meta(
            description="Only errors of these types; all but `rejected`, if none are named.",
            examples=[["timeout", "http.404"]],
        ),
    ] = ()
    when: Annotated[
        Condition | None,
        Meta(description="Only while this is true of the `error`.", examples=["${{ error.exit_code == 2 }}"]),
    ] = None
    do: Annotated[Block | None, Meta(description="Steps to run; they see the `error`.")] = None
    output: Annotated[
        Value | None,
        Meta(description="The output in place of the failed one; default: that of `do`.", examples=[{"results": []}]),
    ] = None


def handlers(clauses: Sequence[Catch]) -> tuple[tuple[Pointer, str, Block], ...]:
    """The blocks of `catch` clauses, as `Node.blocks` gives them."""
    return tuple(
        (("catch", index, "do"), "catch", clause.do) for index, clause in enumerate(clauses) if clause.do is not None
    )


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
    deadline: Duration | None = None
    catch: tuple[Catch, ...] = ()
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

    def blocks(self) -> tuple[tuple[Pointer, str, Block], ...]:
        """Every block in it: its pointer below the step, a label for people, the block."""
        inside = self.step.blocks() if isinstance(self.step, Control) else ()
        found = tuple(((self.verb, *at), label, block) for at, label, block in inside)
        return (*found, *handlers(self.catch))
