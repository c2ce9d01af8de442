"""Shell steps alone, for tests: from plain settings, in a folder of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tramai import duration
from tramai.duration import Duration
from tramai.expression import dec_hook
from tramai.step import Finding, StepError
from tramai.steps.shell import Shell

from .step_context import StepContext, run


class Context(StepContext):
    """A step context with a folder of its own."""

    def __init__(self, folder: Path, scope: dict[str, Any] | None = None, **given: Any) -> None:
        super().__init__(scope, **given)
        self.cwd = str(folder)
        self.shown: list[tuple[str, str]] = []

    def output(self, stream: str, text: str) -> None:
        self.shown.append((stream, text))


def shell(**settings: Any) -> Shell:
    """A step from plain settings, as a file would give them."""
    return msgspec.convert(settings, Shell, dec_hook=_hook)


def _hook(kind: type, data: Any) -> Any:
    return duration.parse(data) if kind is Duration else dec_hook(kind, data)


def findings(**settings: Any) -> list[Finding]:
    """What is wrong with settings before a run."""
    return list(shell(**settings).check())


def fails(ctx: Context, **settings: Any) -> StepError:
    """How a step fails."""
    with pytest.raises(StepError) as error:
        run(shell(**settings), ctx)
    return error.value


def text(ctx: Context, script: str, **settings: Any) -> str:
    """What a script prints."""
    return str(run(shell(run=script, parse="text", **settings), ctx)["value"])
