"""The quick way to understand `run` and `resume` means what click means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tramai.cli import _short
from tramai.cli._group import group
from tramai.cli._session import Session

WORDS = [
    *_short.SWITCHES, *_short.VALUES, *_short.OWN_SWITCHES["resume"], *_short.OWN_VALUES["run"],
    *_short.OWN_VALUES["resume"], *_short.REPEATED["run"], "a", "b=1", "60s", "auto", "-", "--", "-h", "-n", "-qv",
    "--store=x", "--nope", "",
]  # fmt: skip


def slow(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any, dict[str, Any]] | str:
    """What click makes of the arguments, or the name of its error."""
    seen: list[Any] = []
    for name in ("run", "resume"):
        monkeypatch.setattr(
            f"tramai.cli._start.{name}", lambda _, request, name=name: seen.append((name, request)) or 0
        )
    session = Session(arguments)
    try:
        group.call(session)
    except Exception as error:
        return type(error).__name__
    return (*seen[0], session.flags) if seen else "nothing"


@given(name=st.sampled_from(["run", "resume"]), rest=st.lists(st.sampled_from(WORDS), max_size=6))
def test_what_is_understood_quickly_is_what_click_understands(name: str, rest: list[str]) -> None:
    session = Session([name, *rest])
    quick = _short.understand(session)
    if quick is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        assert slow([name, *rest], patch) == (*quick, session.flags)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "x.yaml"],
        ["run", "x.yaml", "-i", "a=1", "--input", "b=2", "--json", "-q"],
        ["run", "x.yaml", "--until", "a", "--report", "md=a.md", "--report", "junit=b.xml"],
        ["resume", "@last", "--until", "a", "--report", "md=a.md"],
        ["run", "--store", "memory:", "x.yaml", "--wait", "1s", "--label", "l", "--start-key", "k"],
        ["resume", "@last", "--as-started"],
        ["resume", "k3f9q2mz", "--file", "x.yaml", "--accept-changes"],
    ],
)
def test_everyday_calls_need_no_click(arguments: list[str]) -> None:
    assert _short.understand(Session(arguments)) is not None


@pytest.mark.parametrize(
    "arguments",
    [[], ["list"], ["run"], ["run", "a", "b"], ["run", "-n", "a"], ["run", "--help"], ["run", "a", "-i"], ["run", "-"]],
)
def test_anything_else_is_for_click(arguments: list[str]) -> None:
    session = Session(arguments)
    assert _short.understand(session) is None
    assert session.flags == {}
