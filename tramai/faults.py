"""Safe failures: nothing leaves the engine but errors with fixed texts; what is behind them goes to diagnostics."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .errors import BugError, Fault, TramaiError

if TYPE_CHECKING:
    from .diagnostics import Sink
    from .redact import Redactor

P = ParamSpec("P")
T = TypeVar("T")


def public(error: Exception) -> TramaiError:
    """The error that may be shown: itself, if it is one of ours, else that there is a bug, by the name of its class."""
    if isinstance(error, TramaiError):
        return error
    bug = BugError(what=type(error).__name__)
    bug.__cause__ = error
    return bug


def diagnose(error: BaseException, sink: Sink | None, redactor: Redactor | None, run_id: str | None) -> None:
    """Tell what is behind a fault to whoever may know, once; afterwards the fault alone is left."""
    if not isinstance(error, Fault):
        return
    if sink is not None and not error.diagnosed:
        from . import diagnostics

        try:
            sink(diagnostics.of(error, redactor, run_id))
        except Exception:  # noqa: BLE001, S110 - a diagnostic that cannot be told must not hide the fault
            pass
    error.diagnosed = True
    error.__cause__ = error.__context__ = None


def safely(function: Callable[P, T]) -> Callable[P, T]:
    """An entry to the engine that lets out safe failures only. A caller's mistake (ValueError) stays one."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (ValueError, TypeError, AttributeError):
            raise
        except Exception as error:  # noqa: BLE001 - the edge of the engine
            found = public(error)
        options: Any = kwargs.get("options")
        diagnose(found, getattr(options, "diagnostics", None), None, None)
        raise found

    return guarded
