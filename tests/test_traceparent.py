"""Where a child stands in a trace: `TRACEPARENT` in its environment, by W3C Trace Context."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tramai import engine, plan, workflow
from tramai.audience import Audience, Overheard
from tramai.cli._group import group
from tramai.steps._child_env import environment
from tramai.stores.memory import Memory

from .engine.support import make, run
from .step_context import StepContext

OURS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SPAN = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
ELSEWHERE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SHOW = {"run": 'echo "${TRACEPARENT-none} ${TRACESTATE-none} ${BAGGAGE-none}"', "parse": "text"}
FILE = """\
tramai: 1
name: w
steps: [{id: a, shell: {run: 'echo "${TRACEPARENT-none} ${TRACESTATE-none} ${BAGGAGE-none}"', parse: text}}]
outputs: {said: "${{ steps.a.output }}"}
"""


def told(stands: str | None, **own: str) -> dict[str, str]:
    """The variables of a trace that a child gets."""
    ctx = StepContext()
    ctx.traceparent = stands
    found = environment(ctx, own)
    return {name: found[name] for name in ("TRACEPARENT", "TRACESTATE", "BAGGAGE") if name in found}


@pytest.fixture
def caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started tramai stands in a trace."""
    for name, value in {"TRACEPARENT": OURS, "TRACESTATE": "acme=1", "BAGGAGE": "user=ann"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("caller")
def test_a_child_gets_the_state_of_its_own_trace_and_no_baggage() -> None:
    assert told(SPAN) == {"TRACEPARENT": SPAN, "TRACESTATE": "acme=1"}
    assert told(ELSEWHERE) == {"TRACEPARENT": ELSEWHERE}
    assert told(None) == {}


@pytest.mark.usefixtures("caller")
def test_a_file_that_says_where_its_child_stands_is_right() -> None:
    assert told(SPAN, TRACEPARENT="mine") == {"TRACEPARENT": "mine"}
    assert told(SPAN, BAGGAGE="b=1") == {"TRACEPARENT": SPAN, "TRACESTATE": "acme=1", "BAGGAGE": "b=1"}


def test_children_of_a_run_get_what_its_starter_said_if_it_is_valid() -> None:
    made = make([{"id": "a", "shell": SHOW}], outputs={"said": "${{ steps.a.output }}"})
    for parent, expected in ((OURS, OURS), ("nonsense\n", "none"), (None, "none")):
        result = run(Memory(), made, options={"trace": parent})
        assert result.outputs == {"said": f"{expected} none none"}


def test_who_watches_a_run_is_asked_with_the_way_down_to_the_step(tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []

    class Watches:
        def __call__(self, event: Any) -> None: ...

        def traceparent(self, *paths: str) -> str:
            asked.append(paths)
            return SPAN

    (tmp_path / "w.yaml").write_text(FILE)
    outer = "tramai: 1\nname: o\nsteps: [{id: sub, call: w.yaml}]\noutputs: {said: '${{ steps.sub.output.said }}'}\n"
    (tmp_path / "o.yaml").write_text(outer)
    made = plan.Plan(workflow.load(str(tmp_path / "o.yaml")))
    options = engine.Options(trace=OURS)
    result = engine.run(made, {}, store=Memory(), observers=[Watches()], options=options)
    assert result.outputs == {"said": f"{SPAN} none none"}
    assert asked == [("sub", "a")]


@pytest.mark.parametrize("answer", [lambda *_: "nonsense", lambda *_: None, lambda *_: 1 / 0])
def test_an_observer_that_raises_or_talks_nonsense_is_passed_over(answer: Callable[..., Any]) -> None:
    class Odd:
        traceparent = staticmethod(answer)

        def __call__(self, event: Any) -> None: ...

    audience = Audience([Odd()], "r")
    assert audience.traceparent("a") is None
    audience.parent = OURS
    assert (audience.traceparent("a"), Overheard(audience, "sub", "c").traceparent("a")) == (OURS, OURS)


@pytest.mark.usefixtures("caller")
def test_the_command_line_hands_the_trace_of_its_caller_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAMAI_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    Path("w.yaml").write_text(FILE)
    for line in (["run", "w.yaml", "--json"], ["rerun", "@last", "--json"]):
        result = CliRunner().invoke(group, line)
        assert result.exit_code == 0, result.output
        assert f"{OURS} acme=1 none" in result.stdout
    put = CliRunner().invoke(group, ["run", "w.yaml", "--detach", "--json"])
    assert put.exit_code == 0, put.output
    assert "run.traced" not in CliRunner().invoke(group, ["show", "@last", "--json"]).stdout
