"""How a run is to be carried out, and how it stands afterwards."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from .codec import Json
from .errors import CredentialsRefused
from .store import CALLED as CALLED

EXIT = {
    "completed": 0,
    "failed": 1,
    "blocked": 5,
    "rejected": 10,
    "sleeping": 11,
    "waiting": 11,
    "cancelled": 12,
    "interrupted": 130,
}
"""Exit status by how a run ended."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is carried out; nothing here changes what it computes.

    `wait`: delays up to this many seconds are waited for in the process, longer ones suspend the run.
    `lease`: seconds a claim lasts; renewed every third of it. `logs`: folder for the output of children.
    `interrupt` asks the run to stop after saving, `hurry` to end its children at once. `diagnostics` is called with a
    `diagnostics.Diagnostic` for every fault: what is behind the fixed text that everybody else sees. `secrets` are
    values in the place of the declared sources, which are then not looked at. `driver` makes the driver, from the plan
    and the interrupt: a test's waits for nothing. `answer`, a `deciding.Answer`, is asked when only gates are open.
    `warn` is called with a sentence for what speaks against a secret as it is: too short, or readable by others.
    `servers` are MCP servers by name, each as a workflow file would give it; `http` is what holds for all requests.
    `providers` are model services by name, as `accounts.Entry` has them. `hide` is called with the values that are
    masked, before anything is told of a run that has some.
    """

    wait: float = 60.0
    lease: float = 30.0
    start_key: str | None = None
    labels: tuple[str, ...] = ()
    queue: str = "default"
    priority: int = 0
    started_by: str | None = None
    logs: str | None = None
    cwd: str | None = None
    run_id: str | None = None
    interrupt: Any = None
    hurry: Any = None
    diagnostics: Any = None
    warn: Any = None
    hide: Any = None
    secrets: Mapping[str, str] | None = None
    driver: Any = None
    answer: Any = None
    servers: Mapping[str, Any] | None = None
    http: Mapping[str, Any] | None = None
    providers: Mapping[str, Any] | None = None
    again: Any = None
    """A `revival.Policy`: whether a run that fails is tried again by itself."""
    trace: str | None = None
    """The `traceparent` (W3C Trace Context) of whoever starts the run, for tracers among the observers and for
    the children of steps."""
    order: Any = None
    """The `calling.Order` of the run that calls this one."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands after `run` or `resume`.

    `status`: completed, failed, cancelled, sleeping, waiting, blocked or interrupted. `resumed` is False when nothing
    had to be done. `error` is the record of the failed step.
    """

    run_id: str
    status: str
    exit_status: int
    outputs: Json = None
    error: dict[str, Any] | None = None
    wake_at: float | None = None
    resumed: bool = True


_FAILED = {"rejected": EXIT["rejected"], "auth": CredentialsRefused.exit_status}
"""Failures that have an exit status of their own: a gate said no, credentials were refused."""


def exit_status(status: str, error: Mapping[str, Any] | None) -> int:
    """The exit status of the command for how a run ended."""
    if status == "failed" and error is not None and error.get("type") in _FAILED:
        return _FAILED[error["type"]]
    return EXIT.get(status, 1)


@functools.cache
def user() -> str:
    """Who is doing this: the login name, empty where it cannot be known."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return os.environ.get("USER", "")
