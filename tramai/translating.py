"""What the code of another package raises, as a failure of the step that needs it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from .error_types import ERROR_TYPES
from .errors import TramaiError
from .expression import ExpressionError
from .step import StepError, Usage

_OF_THE_RUN = ("TRM4", "TRM5")
"""Codes of errors about the run itself and its store, which are not for a step to fail by."""


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """Make `plugin.…` of everything that is no StepError; what ends or suspends the run itself stays what it is."""
    try:
        yield
    except StepError as error:
        _mend(error)
        raise
    except ExpressionError:
        raise
    except (Exception, SystemExit) as error:  # the edge to a foreign class: what it raises is the step's failure
        if _is_ours(error):
            raise
        raise _failed(name, error) from error
    except BaseException as error:
        if not _is_cancelled_inside(error):
            raise
        raise _failed(name, error) from error


def _mend(error: StepError) -> None:
    """Make each part of it what the engine counts on."""
    error.type = str(error.type)
    error.message = str(error.message)
    if error.type.partition(".")[0] not in {*ERROR_TYPES, "plugin"}:
        error.type = f"plugin.{error.type}"
    for name, kind in (("retry_after", int | float | None), ("usage", Usage | None)):
        if not isinstance(getattr(error, name), kind):
            setattr(error, name, None)


def _failed(name: str, error: BaseException) -> StepError:
    kind = "timeout" if isinstance(error, TimeoutError) else f"plugin.{type(error).__name__}"
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - it cannot even say what it is
        text = ""
    said = f": {text}" if text else ""
    return StepError(kind, f"{name} raised {type(error).__name__}{said}{_place(error)}")


def _is_cancelled_inside(error: BaseException) -> bool:
    """Whether it comes from a task that foreign code has cancelled itself: nobody has cancelled the step."""
    import asyncio

    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return task is None or not task.cancelling()


def _is_ours(error: BaseException) -> bool:
    """Whether it is the engine's way to end an attempt, seen from inside a step."""
    if isinstance(error, TramaiError):
        return error.code.startswith(_OF_THE_RUN)
    return type(error).__module__.partition(".")[0] == "tramai"


def _place(error: BaseException) -> str:
    """File and line in which it came up, for those who can mend it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"
