"""What a step shows while it runs: a secret in pieces is masked, and nothing that is shown is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tramai.audience import Audience
from tramai.context import StepContext
from tramai.event import StepOutput
from tramai.redact import Redactor


def context(values: list[str]) -> tuple[StepContext, list[Any]]:
    told: list[Any] = []
    interrupt = object()
    ctx = StepContext.__new__(StepContext)
    ctx._host = SimpleNamespace(  # type: ignore[assignment]
        audience=Audience([told.append], "run"),
        interrupt=interrupt,
        meter=SimpleNamespace(attempting=lambda path, usage: None),
    )
    ctx.path, ctx.hidden, ctx._maskers = "step", Redactor(values).hidden, {}
    ctx.interrupt = interrupt  # type: ignore[assignment]
    return ctx, told


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_secret_that_a_model_says_word_by_word_is_masked(size: int) -> None:
    ctx, told = context(["open-sesame-ü"])
    said = "it is open-sesame-ü, öffne dich, open-ses"
    for at in range(0, len(said), size):
        ctx.output("stdout", said[at : at + size])
        ctx.output("stderr", "|")
    ctx.close()
    shown = [event for event in told if isinstance(event, StepOutput)]
    assert "".join(event.text for event in shown if event.stream == "stdout") == "it is ***, öffne dich, open-ses"
    assert "".join(event.text for event in shown if event.stream == "stderr") == "|" * len(range(0, len(said), size))
    assert all(event.text for event in shown)


def test_without_secrets_pieces_are_shown_as_they_come() -> None:
    ctx, told = context([])
    ctx.output("stdout", "a")
    ctx.output("stdout", "b")
    assert [event.text for event in told] == ["a", "b"]
