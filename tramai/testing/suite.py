"""What a workflow test file (`*.tramai-test.yaml`, `*.tramai-test.toml`) can say, as Structs."""

# No annotations from the future here, as in `definition`: msgspec would have to compile their texts.

from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import UNSET, UnsetType

from ..duration import Duration
from ..expression import Condition

Meta = msgspec.Meta

ENDINGS = (".tramai-test.yaml", ".tramai-test.yml", ".tramai-test.toml")
"""How the names of test files end."""
TITLE = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+$"


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The error that an attempt of a stubbed step ends with."""

    type: Annotated[str, Meta(description="The type of the error.", examples=["timeout", "http.503", "exit.2"])]
    message: Annotated[str, Meta(description="The text of the error.")] = "the stub says that it fails"
    exit_code: Annotated[int | None, Meta(description="`error.exit_code`; of itself with `exit.N`.")] = None
    status: Annotated[int | None, Meta(description="`error.status`; of itself with `http.NNN`.")] = None
    body: Annotated[Any, Meta(description="`error.body`.")] = UNSET
    output: Annotated[str | None, Meta(description="`error.output`: the last lines of a child.")] = None
    retry_after: Annotated[Duration | None, Meta(description="How long the other side asks to wait.")] = None


class Spent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an attempt is said to have used."""

    input_tokens: Annotated[int, Meta(ge=0, description="Tokens that went in.")] = 0
    output_tokens: Annotated[int, Meta(ge=0, description="Tokens that came out.")] = 0
    cost_usd: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="What it cost, in US dollars.")] = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a stubbed step does in the place of its work: it gives an output, a full record, or an error."""

    output: Annotated[Any, Meta(description="The step's output, as later steps see it.")] = UNSET
    result: Annotated[
        Any, Meta(description="The verb's full record; the step's own `output` and `save` are computed from it.")
    ] = UNSET
    error: Annotated[Failure | None, Meta(description="The attempt fails with this.")] = None
    takes: Annotated[
        Duration | None, Meta(description="Time that passes meanwhile; more than the step's `timeout` is a timeout.")
    ] = None
    usage: Annotated[Spent | None, Meta(description="Tokens and cost of the attempt.")] = None
    each: Annotated[
        tuple[Union["Answer", tuple["Answer", ...]], ...],
        Meta(description="An answer for each time the step runs in turn: in turns of a loop, in order."),
    ] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person says at a gate."""

    decision: Annotated[
        Literal["approve", "reject", "none"], Meta(description="`none` lets the time of the gate pass.")
    ] = "approve"
    by: Annotated[str, Meta(min_length=1, description="Who says it.")] = "tester"
    comment: Annotated[str | None, Meta(description="What is said with it.")] = None
    data: Annotated[dict[str, Any] | None, Meta(description="What is filled into the gate's form.")] = None


class ExpectedError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the error must be; what is not named may be anything."""

    type: Annotated[str | None, Meta(description="The type, or a class of types such as `http.5xx`.")] = None
    step: Annotated[str | None, Meta(description="The id of the step that failed.")] = None
    path: Annotated[str | None, Meta(description="The path of the step that failed.")] = None
    attempt: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="The number of the attempt.")] = None
    message: Annotated[str | None, Meta(description="A part of the message.")] = None


StepStatus = Literal["succeeded", "failed", "skipped", "recovered", "cancelled", "unknown", "not_reached"]


class ExpectedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a step must have ended."""

    status: Annotated[StepStatus | None, Meta(description="How it ended; `not_reached`: it never began.")] = None
    attempts: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="How many attempts there were.")] = None
    output: Annotated[Any, Meta(description="The whole output.")] = UNSET
    output_includes: Annotated[Any, Meta(description="What the output must at least hold.")] = UNSET
    error: Annotated[ExpectedError | None, Meta(description="What it failed with.")] = None


class ExpectedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attempt of a stubbed step."""

    step: Annotated[str, Meta(description="The path or the id of the step.", examples=["triage[42].classify"])]
    attempt: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="The number of the attempt.")] = None
    given: Annotated[
        dict[str, Any],
        Meta(description="Settings as they were rendered, by their names in the file; others may be anything."),
    ] = {}


class Expect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be true when the run is over or stands still. Without `status` and `error` it must be completed."""

    status: Annotated[
        Literal["completed", "failed", "cancelled", "sleeping", "waiting", "blocked"] | None,
        Meta(description="How the run ended."),
    ] = None
    exit_status: Annotated[
        Annotated[int, Meta(ge=0, le=255)] | None, Meta(description="The exit status of `tramai run`.")
    ] = None
    outputs: Annotated[Any, Meta(description="All outputs of the workflow.")] = UNSET
    outputs_include: Annotated[dict[str, Any], Meta(description="What the outputs must at least hold.")] = {}
    error: Annotated[ExpectedError | None, Meta(description="What the run failed with.")] = None
    steps: Annotated[dict[str, ExpectedStep], Meta(description="How steps ended, by path or id.")] = {}
    calls: Annotated[
        tuple[str | ExpectedCall, ...] | dict[str, Annotated[int, Meta(ge=0)]] | UnsetType,
        Meta(description="All attempts of stubbed steps in their order; or how many there were, by path or id."),
    ] = UNSET
    state: Annotated[Any, Meta(description="The whole state at the end.")] = UNSET
    state_includes: Annotated[dict[str, Any], Meta(description="What the state must at least hold.")] = {}
    that: Annotated[
        tuple[Condition, ...],
        Meta(
            description="Conditions over `status`, `outputs`, `error`, `steps`, `state`, `calls` and `inputs`.",
            examples=[["${{ outputs.total > 3 }}"]],
        ),
    ] = ()


Stubs = dict[str, Answer | tuple[Answer, ...]]
Decisions = dict[str, Decision | tuple[Decision, ...]]


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is given: for one test, or beside `workflow` for every test of the file."""

    inputs: Annotated[dict[str, Any], Meta(description="Inputs of the workflow.")] = {}
    env: Annotated[dict[str, str], Meta(description="Values in the place of those in the workflow's `env`.")] = {}
    secrets: Annotated[
        dict[str, str], Meta(description="Made-up values of secrets; `fake-NAME` for one that is not named.")
    ] = {}
    now: Annotated[
        str | None,
        Meta(description="The instant at which the run starts: ISO 8601.", examples=["2027-01-31T08:00:00Z"]),
    ] = None
    stubs: Annotated[
        Stubs,
        Meta(
            description="What steps do in the place of their work, by path, by id, or by a path with `*` as a key; "
            "`tell > send` is `send` in the workflow that `tell` calls. A list has an answer for each attempt.",
            examples=[{"fetch": {"output": {"status": 200}}}],
        ),
    ] = {}
    allow: Annotated[
        tuple[str, ...], Meta(description="Verbs or steps that really run although they reach outside.")
    ] = ()
    answers: Annotated[Decisions, Meta(description="What people say at gates, by path or id.")] = {}


class Case(Given, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test: a run, and what must be true of it."""

    name: Annotated[str, Meta(max_length=200, pattern=TITLE, description="A sentence that says what is tested.")]
    description: Annotated[str | None, Meta(description="For people.")] = None
    crash_after: Annotated[
        str | None, Meta(description="The run is cut off when the end of this step is saved, and goes on elsewhere.")
    ] = None
    crash_everywhere: Annotated[
        bool, Meta(description="The run is also cut off before and after each of its writes, and must end the same.")
    ] = False
    resume: Annotated[int, Meta(ge=0, le=100, description="How often the run is resumed after it has failed.")] = 0
    wake: Annotated[bool, Meta(description="Whether pauses pass; else the run is left sleeping at the first.")] = True
    expect: Annotated[Expect, Meta(description="What must be true at the end.")] = Expect()


class Suite(Given, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A test file: the workflow it tests, and its tests."""

    workflow: Annotated[
        str, Meta(min_length=1, description="The workflow file, from the folder of this one.", examples=["review.yaml"])
    ]
    description: Annotated[str | None, Meta(description="For people.")] = None
    folder: Annotated[
        str | None, Meta(description="The folder in which allowed steps work; a new empty one for each test otherwise.")
    ] = None
    tests: Annotated[tuple[Case, ...], Meta(min_length=1, description="The tests.")]


def is_suite(path: str) -> bool:
    """Whether a file is a test file, by its name."""
    return path.lower().endswith(ENDINGS)
