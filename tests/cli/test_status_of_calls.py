"""`status` and the last lines of a run whose called run waits for somebody."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

from tests.cli.conftest import document, write
from tramai.cli._advice import short

CHILD = "tramai: 1\nname: child\nsteps:\n  - {id: q, gate: {ask: 'Go on?'}}\n"
PARENT = "tramai: 1\nname: parent\nsteps:\n  - {id: c, call: ./child.yaml}\n"


def test_a_run_that_waits_with_what_it_has_called_says_so(tramai: Callable[..., Result]) -> None:
    write("child.yaml", CHILD)
    ran = tramai("run", write("parent.yaml", PARENT))
    assert ran.exit_code == 11
    assert "look:     tramai status" in ran.output
    waiting = {one["workflow"]: one for one in document(tramai("status", "--json"))["waiting"]}
    child, parent = waiting["child"], waiting["parent"]
    assert child["commands"] == [f'tramai approve {short(child["run_id"])} --comment "…"']
    assert (parent["called"], parent["commands"]) == ([child["run_id"]], [])
    assert f"for the run that it has called: {short(child['run_id'])}" in tramai("status").output
    tramai("approve", child["run_id"], "--resume")
    (after,) = document(tramai("status", "--json"))["waiting"]
    assert (after["called"], after["commands"]) == ([], [f"tramai resume {short(parent['run_id'])}"])
    assert tramai("resume", parent["run_id"]).exit_code == 0
