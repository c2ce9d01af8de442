"""`python -m tests.chaos --minutes 10`: the whole of it, with a table of what was done and what was found."""

from __future__ import annotations

import argparse
import sys
import time

import msgspec

from .campaign import Plan, Report, campaign


def main() -> None:
    """Carry out one campaign; the status is 1 when anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what is done, and when; default: the time")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--pace", type=float, default=2.0, help="seconds between two harms")
    parser.add_argument("--json", action="store_true", help="the report as one JSON document")
    given = parser.parse_args()
    plan = Plan(seconds=given.minutes * 60, seed=given.seed, workers=given.workers, runs=given.runs, pace=given.pace)
    report = campaign(plan, lambda text: print(text, file=sys.stderr, flush=True))
    print(msgspec.json.encode(report).decode() if given.json else table(report))
    sys.exit(bool(report.violations))


def table(report: Report) -> str:
    """The figures, one a line."""
    rows: list[tuple[str, object]] = [
        ("seed", report.plan.seed),
        ("seconds of harm", round(report.plan.seconds)),
        ("runs", report.runs),
        *((f"  {status}", count) for status, count in sorted(report.statuses.items())),
        ("records", report.records),
        ("writes to headers", report.writes),
        ("effects", report.effects),
        ("  not safe to repeat", report.unsafe),
        ("  repeated, safely or as told", report.repeated),
        ("workers started", report.workers),
        *sorted(report.harm.items()),
        *sorted(report.people.items()),
        ("takeovers", report.takeovers),
        ("seconds until all had come to rest", report.drained),
        *((f"VIOLATIONS, {kind}", count) for kind, count in report.counts.items()),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {value}" for name, value in rows]
    lines += [f"{one.kind}: {one.run} {one.what}" for one in report.violations]
    return "\n".join([*lines, *(f"NOT TESTED, {text}" for text in report.not_tested)])


if __name__ == "__main__":
    main()
