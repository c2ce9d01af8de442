"""The JSON documents of the command line. Fields may be added, never renamed: others build on them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .. import event
from . import _gate_documents, _schedule_documents, _store_documents
from ._diff_documents import Differences
from ._gate_documents import QuestionView
from ._plan_documents import Plan
from ._problem_documents import Finding as Finding
from ._problem_documents import Place as Place
from ._test_documents import Listed, Tests

Text = str | None


class Body(Struct, frozen=True, kw_only=True):
    """One error."""

    code: str
    message: str
    hint: Text = None
    file: Text = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    path: Annotated[Text, Meta(description="JSON pointer into the file")] = None
    run_id: Text = None
    correlation_id: Annotated[
        str | UnsetType, Meta(description="what the diagnostic of a fault of the store or of tramai is found by")
    ] = UNSET


class Error(Struct, frozen=True, kw_only=True):
    """A command that could not do its work. `problems`: every finding, when a definition is invalid."""

    schema: Literal["tramai.error/1"] = "tramai.error/1"
    exit_status: int
    error: Body
    problems: list[Finding] | UnsetType = UNSET
    details: Annotated[dict[str, Any] | UnsetType, Meta(description="facts behind the error, such as the diff")] = UNSET


class File(Struct, frozen=True, kw_only=True):
    """A file that was validated; `name`, `version`, `digest` are null when it has errors."""

    file: str
    name: Text
    version: Text
    digest: Text
    problems: list[Finding]
    fixed: Annotated[list[Finding] | UnsetType, Meta(description="what `--fix` mended, or would with `--diff`")] = UNSET
    diff: Annotated[str | UnsetType, Meta(description="what `--fix --diff` would change")] = UNSET


class Validation(Struct, frozen=True, kw_only=True):
    """What `validate` found."""

    schema: Literal["tramai.validation/1"] = "tramai.validation/1"
    files: list[File]


class Digested(Struct, frozen=True, kw_only=True):
    """The digests of a workflow file and of its steps."""

    file: str
    name: str
    version: str
    digest: str
    steps: dict[str, str]


class Digest(Struct, frozen=True, kw_only=True):
    """What `digest` computed."""

    schema: Literal["tramai.digest/1"] = "tramai.digest/1"
    files: list[Digested]


class Detached(Struct, frozen=True, kw_only=True):
    """A run that was made and waits for a worker; with a start key that was used before, that run as it stands."""

    schema: Literal["tramai.detached/1"] = "tramai.detached/1"
    run_id: str
    status: str = "ready"


class GroupView(Struct, frozen=True, kw_only=True):
    """The group of a run: at most `limit` of those with this name are carried out at the same time."""

    name: str
    limit: int


class Summary(Struct, frozen=True, kw_only=True):
    """One line of `list`. Times are epoch seconds."""

    run_id: str
    workflow: str
    version: str
    status: str
    step: Text
    started: float
    ended: float | None
    labels: list[str]
    rerun_of: Text = None
    stale: Annotated[bool, Meta(description="it counts as running and its runner is gone")] = False
    group: GroupView | None = None
    queued: Annotated[bool, Meta(description="somebody waits for its place in its group")] = False


class Fault(Struct, frozen=True, kw_only=True):
    """A record that cannot be read."""

    run_id: str
    problem: str


class Runs(Struct, frozen=True, kw_only=True):
    """What `list` found; `next` is the `--after` of the following page."""

    schema: Literal["tramai.runs/1"] = "tramai.runs/1"
    runs: list[Summary]
    next: Text = None
    faults: list[Fault] = []


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt of a step. Times are epoch seconds; `started` is null when only the end was recorded."""

    attempt: int
    status: str
    started: float | None
    ended: float | None
    worker: Text
    log: Text = None
    exit_status: int | UnsetType = UNSET
    usage: dict[str, Any] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class StepView(Struct, frozen=True, kw_only=True):
    """A step as far as the run got."""

    path: str
    id: str
    verb: str
    status: str
    output: Any = None
    attempts: list[Attempt]


class Happening(Struct, frozen=True, kw_only=True):
    """A line of the run's event list: lifecycle, cancels, resolves."""

    seq: int
    at: float
    type: str
    by: Text
    comment: Text
    data: Any = None


class RunView(Struct, frozen=True, kw_only=True):
    """A run. `status` is where it stands now; times are epoch seconds."""

    run_id: str
    workflow: str
    version: str
    digest: str
    status: str
    file: Text
    cwd: str
    inputs: dict[str, Any]
    state: dict[str, Any]
    outputs: Any
    error: dict[str, Any] | None
    labels: list[str]
    created: float
    updated: float
    ended: float | None
    wake_at: float | None
    owner: Text
    step: Text
    rerun_of: Text = None
    stale: Annotated[bool, Meta(description="it counts as running and its runner is gone")] = False
    group: GroupView | None = None
    queued: Annotated[bool, Meta(description="somebody waits for its place in its group")] = False
    questions: Annotated[list[QuestionView], Meta(description="what gates wait with")] = []
    steps: list[StepView]
    events: list[Happening]


class Run(Struct, frozen=True, kw_only=True):
    """What `show` shows."""

    schema: Literal["tramai.run/1"] = "tramai.run/1"
    run: RunView


class GraphNode(Struct, frozen=True, kw_only=True):
    """A step in a graph; `parent` is the step whose `block` it stands in. `status`: where a run stands at it."""

    id: str
    verb: str
    parent: Text
    block: Text
    when: Text
    digest: str
    line: int | None
    column: int | None
    status: str | UnsetType = UNSET


class GraphEdge(Struct, frozen=True, kw_only=True):
    """`target` may begin when `source` is over; `label` names the block that is entered."""

    source: str
    target: str
    label: Text


class Graph(Struct, frozen=True, kw_only=True):
    """The steps of a workflow as nodes and edges."""

    schema: Literal["tramai.graph/1"] = "tramai.graph/1"
    name: str
    version: str
    digest: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class Named(Struct, frozen=True, kw_only=True):
    """`schema NAME`: a published JSON Schema, whole."""

    schema: Literal["tramai.schema/1"] = "tramai.schema/1"
    name: str
    file: str
    document: dict[str, Any]
    names: list[str]


class Explanation(Struct, frozen=True, kw_only=True):
    """`explain CODE`; `text` is Markdown."""

    schema: Literal["tramai.explanation/1"] = "tramai.explanation/1"
    code: str
    title: str
    text: str


class Code(Struct, frozen=True, kw_only=True):
    """An error code and its title."""

    code: str
    title: str


class Codes(Struct, frozen=True, kw_only=True):
    """`explain` without a code: all of them."""

    schema: Literal["tramai.codes/1"] = "tramai.codes/1"
    codes: list[Code]


class Log(Struct, frozen=True, kw_only=True):
    """What one attempt wrote; `text` is what is left after `--tail`."""

    path: str
    attempt: int
    file: str
    text: Text


class Logs(Struct, frozen=True, kw_only=True):
    """`logs`: every log that was asked for."""

    schema: Literal["tramai.logs/1"] = "tramai.logs/1"
    run_id: str
    logs: list[Log]


class LogLine(Struct, frozen=True, kw_only=True):
    """`logs -f`: one line of one attempt."""

    schema: Literal["tramai.log/1"] = "tramai.log/1"
    run_id: str
    path: str
    attempt: int
    text: str


class Cancelled(Struct, frozen=True, kw_only=True):
    """`cancel`: `status` is `cancelled`, or still `running` while the owner stops its steps."""

    schema: Literal["tramai.cancelled/1"] = "tramai.cancelled/1"
    run_id: str
    status: str


class Resolved(Struct, frozen=True, kw_only=True):
    """`resolve`: what was recorded."""

    schema: Literal["tramai.resolved/1"] = "tramai.resolved/1"
    run_id: str
    path: str
    resolved_as: Annotated[str, Meta(description="completed, failed, retry or skipped")]
    status: str


class Completion(Struct, frozen=True, kw_only=True):
    """`completion`: the script."""

    schema: Literal["tramai.completion/1"] = "tramai.completion/1"
    shell: str
    script: str


class Version(Struct, frozen=True, kw_only=True):
    """`--version --json`."""

    schema: Literal["tramai.version/1"] = "tramai.version/1"
    version: str


Event = (
    event.RunStarted | event.RunQueued | event.StepStarted | event.StepFinished | event.StepRetrying | event.GateAsked
    | event.GateDecided | event.RunFinished
)  # fmt: skip
DOCUMENTS = (
    Error, Validation, Digest, Detached, Runs, Run, Plan, Tests, Listed, Differences, Graph, Named, Explanation, Codes,
    Logs, LogLine, Cancelled, Resolved, Completion, Version, *_gate_documents.DOCUMENTS,
    *_store_documents.DOCUMENTS, *_schedule_documents.DOCUMENTS,
)  # fmt: skip
