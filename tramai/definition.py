"""A workflow as Structs: what a file can say, without the verbs' own settings."""

# No annotations from the future here: msgspec would have to compile their texts in every short run.

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from . import size
from .concurrency import Concurrency
from .duration import Duration
from .errors import Pointer
from .expression import Condition, Template, Value
from .inputs import InputSpec
from .permits import Permits
from .schedule import Schedule
from .step import Block, Catch, Control, Node, Replay, Retry, Step, handlers

T = TypeVar("T")
Meta = msgspec.Meta

ID = r"^[a-z][a-z0-9_]*$"
NAME = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+$"


Size = Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern=size.PATTERN)]
"""Bytes as a number, or as people write them."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run is stopped, counted over all its attempts and resumes."""

    max_step_executions: Annotated[int, Meta(ge=1, description="How many steps may start, retries included.")] = 1000
    max_parallel_branches: Annotated[int, Meta(ge=1, description="How many branches or items run at once.")] = 16
    timeout: Annotated[
        Duration | None, Meta(description="Running time of the whole run; while it is suspended none passes.")
    ] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Tokens of all models together, in and out.")
    ] = None
    max_cost_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="What all models together may cost, in US dollars, as far as their prices are known."),
    ] = None
    max_value: Annotated[
        Size | None, Meta(description="The largest output, saved value or list of items, as JSON: `32MiB` by default.")
    ] = None
    max_state: Annotated[
        Size | None, Meta(description="The largest state, all its values together, as JSON: `64MiB` by default.")
    ] = None


class SecretSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a secret's value comes from: exactly one place."""

    env: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description="An environment variable.")] = None
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | None, Meta(description="A file; its last line break is not part of it.")
    ] = None
    command: Annotated[
        Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)] | None,
        Meta(
            description="A program and its arguments, run without a shell: what it prints, less its last line break.",
            examples=[["op", "read", "op://work/github/token"]],
        ),
    ] = None
    keyring: Annotated[
        Annotated[str, Meta(pattern=r"^[^/]+(/[^/]+)*/[^/]+$")] | None,
        Meta(
            description="An entry of the system's keyring, as `service/name`; needs `tramai[keyring]`.",
            examples=["tramai/github"],
        ),
    ] = None
    short: Annotated[
        bool | None,
        Meta(description="A value of fewer than four characters is accepted; it is not masked, wherever it appears."),
    ] = None

    def given(self) -> tuple[str, ...]:
        """The kinds of source that it names."""
        return tuple(kind for kind in ("env", "file", "command", "keyring") if getattr(self, kind) is not None)


class StateSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that steps may replace with `save`."""

    initial: Annotated[Any, Meta(description="The value before any step has saved one.")]
    schema: Annotated[dict[str, Any] | None, Meta(description="A JSON Schema that every value must meet.")] = None
    reduce: Annotated[
        Literal["append", "merge", "sum", "last"] | None,
        Meta(
            description="What `save` does with what is there: append to the list, merge into the map, add to the sum, "
            "or let the last one win. With it, steps that run side by side may save the same key."
        ),
    ] = None


class Common(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that any step may have beside its verb."""

    id: Annotated[
        str,
        Meta(
            pattern=ID,
            max_length=100,
            description="The step's name: lower-case letters, digits and `_`, a letter first; unique in the file.",
        ),
    ]
    description: Annotated[str | None, Meta(description="For people.")] = None
    when: Annotated[Condition | None, Meta(description="The step is skipped unless this is true.")] = None
    retry: Annotated[Retry | None, Meta(description="What happens when an attempt fails.")] = None
    timeout: Annotated[Duration | None, Meta(description="How long one attempt may take.")] = None
    deadline: Annotated[
        Duration | None, Meta(description="How long the step may take in all, its retries and pauses included.")
    ] = None
    catch: Annotated[
        tuple[Catch, ...], Meta(description="What to do about a failure of the step instead of failing the run.")
    ] = ()
    output: Annotated[Value | None, Meta(description="Reshapes `result` into the step's output.")] = None
    schema: Annotated[dict[str, Any] | None, Meta(description="A JSON Schema that the output must meet.")] = None
    save: Annotated[dict[str, Value], Meta(description="Writes declared state, together with the step's end.")] = {}
    replay: Annotated[
        Replay | None, Meta(description="What may be done with an attempt that started and whose end was not seen.")
    ] = None
    verify: Annotated[
        Any, Meta(description="Tells whether an attempt whose end was not seen had happened: a condition, or a verb.")
    ] = None


class Asking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that `verify` may have beside the verb it asks."""

    output: Annotated[
        Value | None, Meta(description="What the verb's `result` says: true or false, or `happened` and `output`.")
    ] = None
    timeout: Annotated[Duration | None, Meta(description="How long an answer may take: 60s by default.")] = None
    replay: Annotated[
        Replay | None, Meta(description="`replayable` says of a verb such as `shell` that asking changes nothing.")
    ] = None


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """A whole definition. `document` is the file it was read from, None when it was rebuilt from a store."""

    tramai: Annotated[Literal[1], Meta(description="The version of the language.")] = 1
    name: Annotated[
        str, Meta(max_length=100, pattern=NAME, description="What people call it: 1 to 100 printable characters.")
    ]
    version: Annotated[str, Meta(min_length=1, max_length=100, description="The author's version of it.")] = "1"
    description: Annotated[str | None, Meta(description="For people.")] = None
    inputs: Annotated[dict[str, InputSpec], Meta(description="What a run is given.")] = {}
    secrets: Annotated[dict[str, SecretSource], Meta(description="Values that are never shown or stored.")] = {}
    env: Annotated[dict[str, Template], Meta(description="Environment of every child process.")] = {}
    limits: Annotated[Limits, Meta(description="When a run is stopped.")] = Limits()
    permits: Annotated[
        Permits | None, Meta(description="All that a run may reach: once this is there, nothing else is permitted.")
    ] = None
    concurrency: Annotated[Concurrency | None, Meta(description="Which runs are not carried out at the same time.")] = (
        None
    )
    schedules: Annotated[tuple[Schedule, ...], Meta(description="When runs start by themselves.")] = ()
    state: Annotated[dict[str, StateSpec], Meta(description="Values that steps share and replace.")] = {}
    defaults: Annotated[
        dict[str, Any],
        Meta(description="Settings for every step of a verb that does not have them itself.", examples=[{"ai": {}}]),
    ] = {}
    steps: Annotated[Block, Meta(description="What is done, in order: at least one step.")]
    catch: Annotated[tuple[Catch, ...], Meta(description="What to do about a failure that no step has caught.")] = ()
    finally_: Annotated[
        Block | None, Meta(description="Steps that run at the end in any case: success, failure or cancel.")
    ] = msgspec.field(name="finally", default=None)
    outputs: Annotated[dict[str, Value], Meta(description="What a completed run gives.")] = {}
    document: Any = None

    def blocks(self) -> tuple[tuple[Pointer, str, Block], ...]:
        """Every block at the top: its pointer, a label for people, the block."""
        last = () if self.finally_ is None else ((("finally",), "finally", self.finally_),)
        return ((("steps",), "steps", self.steps), *handlers(self.catch), *last)

    def walk(self) -> Iterator[Node]:
        """Every step of the file, wherever it stands."""
        for _, _, block in self.blocks():
            yield from block.walk()

    @property
    def file(self) -> str | None:
        """The file it was read from."""
        return self.document.file if self.document is not None else None


CLOSING = Duration(300.0)
"""How long an attempt of a step in `finally` may take when it does not say."""


class Opaque(Step, frozen=True, kw_only=True):
    """Stands for a step that could not be built: its id is known, nothing else is looked at."""

    ids: tuple[str, ...] = ()


def declared(section: Mapping[str, T | None]) -> dict[str, T]:
    """The entries of a section that could be built."""
    return {name: entry for name, entry in section.items() if entry is not None}


def opaque(raw: Any, at: Pointer) -> Node:
    """What stands for a step that could not be built."""
    found = tuple(_ids(raw))
    own = raw.get("id") if isinstance(raw, dict) else None
    name = own if isinstance(own, str) else ""
    return Node(id=name, verb="", step=Opaque(ids=tuple(item for item in found if item != name)), at=at)


def _ids(raw: Any) -> Iterator[str]:
    if isinstance(raw, dict):
        if isinstance(raw.get("id"), str):
            yield raw["id"]
        for value in raw.values():
            yield from _ids(value)
    elif isinstance(raw, list):
        for item in raw:
            yield from _ids(item)


def bounded(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The steps of `finally`, each with a time limit: they run when nobody waits for them any more."""
    made = []
    for node in nodes:
        for _, _, block in node.blocks():
            block.nodes = bounded(block.nodes)
        open_ended = node.timeout is None and node.step.timed and not isinstance(node.step, Control)
        made.append(msgspec.structs.replace(node, timeout=CLOSING) if open_ended else node)
    return tuple(made)
