"""A short campaign in the gate: half a minute of harm, and nothing is done twice, lost, written late, stuck or left."""

from __future__ import annotations

import os

from .__main__ import table
from .campaign import KINDS, Plan, campaign

SEED = int(os.environ.get("CHAOS_SEED", "11"))


def test_after_half_a_minute_of_harm_nothing_is_violated() -> None:
    report = campaign(Plan(seconds=30.0, seed=SEED, workers=4, runs=60, pace=0.8))
    assert not report.violations, table(report)
    assert report.counts == dict.fromkeys(KINDS, 0)
    assert report.runs >= 60
    assert report.unsafe > 20, "hardly anything was carried out"
    assert sum(report.harm.values()) > 10, "hardly any harm was done"
    assert report.takeovers > 0, table(report)
