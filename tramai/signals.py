"""The general event stream: what a run does, in names and numbers that may go into any log or metric.

A signal never holds a payload, a URL, a command or the text of a failure: its attributes are ids, counts, sizes, codes
and digests. The table below is all there is, and the page of events is held against it by a test.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from .event import Attribute, Event, Listener, RunFinished, RunStarted, Signal, StepFinished, StepRetrying, StepStarted

PREFIX = "tramai.workflow."
STEP = ("step", "path_digest", "attempt")
"""What every signal about a step has besides `run_id`. A path may hold keys of a user's data: hence its digest."""
_LEASE = ("owner", "fence", "expires_at")

NAMES: dict[str, tuple[str, ...]] = {
    "started": ("workflow", "version", "definition_digest", "resumed"),
    "completed": ("exit_status", "duration"),
    "failed": ("exit_status", "duration", "error_type"),
    "cancelled": ("exit_status", "duration"),
    "blocked": ("exit_status", "duration"),
    "interrupted": ("exit_status", "duration"),
    "suspended": ("status", "wake_at", "duration"),
    "checkpoint.loaded": ("revision", "fence", "records", "step_executions", "definition_digest"),
    "checkpoint.saved": ("revision", "fence", "records", "notes", "bytes", "step_executions"),
    "lease.claimed": _LEASE,
    "lease.renewed": _LEASE,
    "lease.released": ("owner", "fence"),
    "lease.conflict": ("owner", "code"),
    "step.started": (*STEP, "verb"),
    "step.completed": (*STEP, "verb", "duration"),
    "step.failed": (*STEP, "verb", "duration", "error_type"),
    "step.cancelled": (*STEP, "verb", "duration"),
    "step.skipped": (*STEP, "verb"),
    "step.replayed": (*STEP, "verb"),
    "step.retrying": (*STEP, "verb", "delay", "error_type"),
    "step.unknown": (*STEP, "verb"),
    "step.verified": (*STEP, "verb", "answer"),
    "delay.started": (*STEP, "wake_at"),
    "delay.waiting": (*STEP, "wake_at"),
    "delay.resumed": (*STEP, "wake_at"),
    "gate.asked": (*STEP, "deadline", "approvers", "min"),
    "gate.decided": (*STEP, "decision", "votes"),
    "shell.started": STEP,
    "shell.completed": (*STEP, "exit_code", "stdout_bytes", "stderr_bytes", "survivors"),
    "shell.timeout": STEP,
    "shell.truncated": (*STEP, "stream", "written_bytes", "max_bytes"),
    "http.started": (*STEP, "method"),
    "http.completed": (*STEP, "method", "status", "response_bytes"),
    "http.failed": (*STEP, "method", "error_type"),
    "ai.started": (*STEP, "provider", "model_digest", "prompt_bytes"),
    "ai.reasked": (*STEP, "asked", "problems"),
    "ai.tool_called": (*STEP, "tool_digest", "source", "failed", "argument_bytes", "answer_bytes", "duration"),
    "ai.completed": (*STEP, "asked", "finish_reason", "response_bytes", "input_tokens", "output_tokens"),
    "ai.failed": (*STEP, "error_type"),
    "agent.started": (*STEP, "agent", "model_digest", "prompt_bytes"),
    "agent.completed": (
        *(*STEP, "agent", "exit_code", "finish_reason", "response_bytes", "input_tokens", "output_tokens"),
        *("unread_lines", "survivors"),
    ),
    "agent.failed": (*STEP, "agent", "error_type"),
    "guard.cleaned": (*STEP, "rule", "count"),
    "guard.rejected": (*STEP, "rule"),
    "mcp.started": (*STEP, "transport", "tool_digest"),
    "mcp.completed": (*STEP, "pieces", "text_bytes"),
    "mcp.failed": (*STEP, "error_type"),
    "security.command_denied": (*STEP, "policy", "command_digest"),
    "security.folder_denied": (*STEP, "policy", "folder_digest"),
    "security.request_denied": (*STEP, "method"),
    "security.server_denied": (*STEP, "policy", "server_digest"),
}
"""Every signal of a run, without the prefix, and the attributes it has besides `run_id`."""

WORKER_PREFIX = "tramai.worker."
WORKER_NAMES: dict[str, tuple[str, ...]] = {
    "started": ("concurrency", "queues"),
    "took": ("run_id", "workflow", "from_status", "fence"),
    "finished": ("run_id", "status", "duration", "wake_at"),
    "refused": ("run_id", "code"),
    "dead": ("run_id", "claims"),
    "slot_lost": ("run_id", "status"),
    "store_failed": ("code",),
    "store_back": (),
    "draining": ("reason", "running"),
    "stopped": ("runs",),
    "schedule.fired": ("schedule", "slot", "run_id", "late", "made_up"),
    "schedule.skipped": ("schedule", "slot", "run_id"),
    "schedule.missed": ("schedule", "slot", "count"),
    "schedule.failed": ("schedule", "slot", "code"),
    "schedule.trouble": ("schedule", "code"),
    "schedule.recovered": ("schedule",),
    "schedule.store_failed": ("code",),
    "schedule.store_back": (),
}
"""Every signal of a worker, without the prefix, and the attributes it has besides `worker`."""

_OF_STEP = {"succeeded": "completed", "recovered": "completed"}
_OF_RUN = {"sleeping": "suspended", "waiting": "suspended"}


def send(listeners: Iterable[Listener], signal: Signal) -> None:
    """Tell everybody; whatever they raise stays with them."""
    for listener in listeners:
        try:
            listener.signal(signal)
        except Exception:  # noqa: BLE001, S112 - listeners are fail-open by promise
            continue


def of_worker(worker: str, name: str, about: Mapping[str, Attribute]) -> Signal:
    """What a worker tells of itself, as a signal: without the texts that its lines have for people.

    `queues` becomes a count: their names are the user's.
    """
    given = {**about, "queues": str(about.get("queues") or "").count(",") + 1}
    return Signal(WORKER_PREFIX + name, {"worker": worker, **{key: given.get(key) for key in WORKER_NAMES[name]}})


class Signals:
    """Gives signals to those who want them; an observer, too, for what the run's events say already."""

    def __init__(self, listeners: Sequence[Listener], run_id: str) -> None:
        self._listeners = tuple(listeners)
        self._run_id = run_id

    def send(self, name: str, attributes: dict[str, Attribute]) -> None:
        """Tell everybody; whatever they raise stays with them. Called from any thread of the run."""
        send(self._listeners, Signal(PREFIX + name, {"run_id": self._run_id, **attributes}))

    def __call__(self, event: Event) -> None:
        """Make a signal of an event."""
        if isinstance(event, StepStarted | StepFinished | StepRetrying):
            self._of_step(event)
        elif isinstance(event, RunStarted):
            told: dict[str, Attribute] = {"workflow": event.workflow, "version": event.version}
            self.send("started", {**told, "definition_digest": event.digest, "resumed": event.resumed})
        elif isinstance(event, RunFinished):
            self._of_run(event)

    def _of_step(self, event: StepStarted | StepFinished | StepRetrying) -> None:
        about: dict[str, Attribute] = {**of_step(event.id, event.path, event.attempt), "verb": event.verb}
        if isinstance(event, StepStarted):
            self.send("step.started", about)
        elif isinstance(event, StepRetrying):
            self.send("step.retrying", {**about, "delay": event.delay, "error_type": _type(event.error)})
        else:
            name = _OF_STEP.get(event.status, event.status)
            if name not in ("skipped", "replayed"):
                about["duration"] = event.duration
            if name == "failed":
                about["error_type"] = _type(event.error)
            self.send(f"step.{name}", about)

    def _of_run(self, event: RunFinished) -> None:
        name = _OF_RUN.get(event.status, event.status)
        about: dict[str, Attribute] = {"exit_status": event.exit_status, "duration": event.duration}
        if name == "suspended":
            about = {"status": event.status, "wake_at": event.wake_at, "duration": event.duration}
        elif name == "failed":
            about["error_type"] = _type(event.error)
        self.send(name, about)


def of_step(id: str, path: str, attempt: int) -> dict[str, Attribute]:
    """The attributes of every signal about a step."""
    return {"step": id, "path_digest": digest(path), "attempt": attempt}


@lru_cache(maxsize=1024)
def digest(text: str) -> str:
    """Sixteen hex digits of the SHA-256 of a text that must not be told itself."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _type(error: object) -> str:
    found = error.get("type") if isinstance(error, dict) else None
    return found if isinstance(found, str) else "unknown"
