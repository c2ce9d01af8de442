"""What the code of another package raises, as a failure of the step that needs it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from .error_types import ERROR_TYPES
from .errors import TramaiError
from .expression import ExpressionError
from .step import StepError

_OF_THE_RUN = ("TRM4", "TRM5")
"""Codes of errors about the run itself and its store, which are not for a step to fail by."""


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """Make `plugin.…` of everything that is no StepError; what ends or suspends the run itself stays what it is."""
    try:
        yield
    except StepError as error:
        if error.type.partition(".")[0] not in {*ERROR_TYPES, "plugin"}:
            error.type = f"plugin.{error.type}"
        raise
    except ExpressionError:
        raise
    except Exception as error:  # the edge to a foreign class: whatever it raises is the step's failure
        if _is_ours(error):
            raise
        kind = "timeout" if isinstance(error, TimeoutError) else f"plugin.{type(error).__name__}"
        said = f": {error}" if str(error) else ""
        raise StepError(kind, f"{name} raised {type(error).__name__}{said}{_place(error)}") from error


def _is_ours(error: Exception) -> bool:
    """Whether it is the engine's way to end an attempt, seen from inside a step."""
    if isinstance(error, TramaiError):
        return error.code.startswith(_OF_THE_RUN)
    return type(error).__module__.partition(".")[0] == "tramai"


def _place(error: Exception) -> str:
    """File and line in which it came up, for those who can mend it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"
