"""G. Growth: `validate` and `plan` of files of 100, 1,000 and 5,000 steps, and where the time goes.

    python3 bench/g_growth.py [rounds=7]

The steps are of twelve kinds, with loops, branches, fan-outs, `catch`, gates and state; each reads the one before it.
"""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

from lib import Report, Sample, in_turn, median, program, ratio, rounds_wanted, timed, worker, workplace

LOAD = "import sys, yaml; yaml.load(open(sys.argv[1], encoding='utf-8'), yaml.CSafeLoader)"
SIZES = (100, 1000, 5000)

HEAD = """\
tramai: 1
name: growth
inputs:
  level: {type: string, enum: [low, high], default: low}
  count: {type: integer, default: 3}
  tags: {type: array, items: {type: string}, default: [a, b]}
limits: {max_step_executions: 1000000}
state:
  log: {initial: [], reduce: append}
steps:
"""
KINDS = (
    """\
  - id: aN
    shell: {run: 'echo "$A"', env: {A: "${{ inputs.level }}"}, parse: text}
    retry: {max_attempts: 2, delay: 1s, on: [exit]}
    save: {log: "${{ result.value }}"}
""",
    """\
  - id: aN
    when: ${{ inputs.count > 1 }}
    local: {value: {n: N, of: "${{ steps.aP.output | upper }}"}}
""",
    """\
  - id: aN
    http: {get: "https://example.org/N", query: {q: "${{ inputs.tags | join(',') }}"}, expect_status: [200]}
    catch: [{on: [network], output: {status: 0}}]
""",
    """\
  - id: aN
    branch: {if: "${{ steps.aP.status == 'succeeded' }}", then: [{id: bN, local: 1}], else: []}
""",
    """\
  - id: aN
    foreach: {items: "${{ inputs.tags }}", as: t, do: [{id: bN, shell: {argv: [echo, "${{ t }}"]}}]}
""",
    """\
  - id: aN
    local: ${{ steps.aP.output | length }}
    save: {log: "${{ result }}"}
""",
    """\
  - id: aN
    repeat: {max: 3, until: "${{ loop.index > 1 }}", do: [{id: bN, local: "${{ inputs.count + N }}"}]}
""",
    """\
  - id: aN
    gate: {check: "${{ inputs.count < 1000 + N }}", reason: too many at N}
""",
    """\
  - id: aN
    parallel:
      branches:
        one: [{id: bN, local: "${{ inputs.tags | first }}"}]
        two: [{id: cN, shell: "true", save: {log: 1}}]
""",
    """\
  - id: aN
    ai: {model: "demo:echo", prompt: "Part N at ${{ inputs.level }}: ${{ steps.aP.output.one.bN_ }}"}
""",
    """\
  - id: aN
    gate: {ask: "Go on with N?", show: "${{ steps.aP.output }}", timeout: 2h, on_timeout: reject}
""",
    """\
  - id: aN
    branch:
      select: ${{ inputs.level }}
      cases: {low: [{id: bN, delay: 1s}], high: [{id: cN, local: {value: {x: "${{ steps.aP.output.by }}"}}}]}
""",
)


def steps(count: int) -> str:
    """A file with that many steps at the top, of all kinds in turn; with those inside them half as many again."""
    made = []
    for number in range(count):
        text = KINDS[number % len(KINDS)].replace("bN_", f"b{number - 1}")
        made.append(text.replace("aP", f"a{number - 1}").replace("N", str(number)))
    return HEAD + "".join(made)


def main() -> None:
    report = Report("g_growth", "G. Growth: CPU of `validate` and `plan`, for files of 100, 1,000 and 5,000 steps")
    command, loader = program("tramai", "tramai"), program("pyyaml")
    contenders: dict[str, Any] = {}
    for count in (1, *SIZES):
        contenders[f"PyYAML, {count:,}"] = [loader, "-c", LOAD, f"{count}.yaml"]
        contenders[f"validate, {count:,}"] = [command, "validate", f"{count}.yaml"]
        contenders[f"plan, {count:,}"] = [command, "plan", f"{count}.yaml"]
    with workplace(disk=False) as folder:
        for count in (1, *SIZES):
            (folder / f"{count}.yaml").write_text(steps(count))

        def fresh(argv: list[str]) -> Sample:
            shutil.rmtree(folder / "cache", ignore_errors=True)  # or `plan` would read no file a second time
            return timed(argv, folder)

        found = in_turn(rounds_wanted(7), contenders, fresh)
        spent = {count: worker("tramai", "g_growth.py", folder / f"{count}.yaml") for count in SIZES}
    _growth(report, found)
    _places(report, spent)


def _growth(report: Report, found: dict[str, list[Sample]]) -> None:
    rows = []
    for what in ("PyYAML", "validate", "plan"):
        start = found[f"{what}, 1"]
        times = [_beyond(found[f"{what}, {count:,}"], start) for count in SIZES]
        base = [ratio(ours, found[f"PyYAML, {count:,}"]) for ours, count in zip(times, SIZES, strict=True)]
        growth = [ratio(times[index], times[index - 1]) for index in (1, 2)]
        rows.append((what, *(median(one) * 1e3 for one in times), *growth, base[-1]))
    head = ["", "100, cpu ms", "1,000", "5,000", "1,000 to 100, x", "5,000 to 1,000, x", "5,000 to loading, x"]
    report.table(head, rows)
    report.goals([(f"{row[0]}, 5,000 against 1,000 steps", 6.0, 5.0, row[5]) for row in rows[1:]])


def _beyond(samples: list[Sample], start: list[Sample]) -> list[Sample]:
    """What the steps cost, what a file of one step costs left out."""
    return [{"cpu": ours["cpu"] - theirs["cpu"]} for ours, theirs in zip(samples, start, strict=True)]


def _places(report: Report, spent: dict[int, Sample]) -> None:
    names = sorted(spent[SIZES[-1]], key=lambda name: -spent[SIZES[-1]][name])
    whole = sum(spent[SIZES[-1]].values())
    rows = []
    for name in names:
        per = [spent[count][name] / count * 1e6 for count in SIZES]
        rows.append((name, *per, per[2] / max(per[0], 0.05), spent[SIZES[-1]][name] / whole * 100))
    report.table(["", "100, us a step", "1,000", "5,000", "5,000 to 100, x", "% of 5,000"], rows)


def _work(path: str) -> None:
    """Where the time goes in one process: the least of three for each part, in CPU seconds."""
    least: dict[str, float] = {}
    for _ in range(4):
        for name, seconds in _once(path).items():
            least[name] = min(seconds, least.get(name, seconds))
    print(json.dumps(least))


def _once(path: str) -> dict[str, float]:
    import gc
    from time import process_time

    from tramai import build, check, document, linking, plan, schema, workflow
    from tramai.check.scene import Scene

    gc.collect()
    gc.disable()
    spent: dict[str, float] = {}
    last = process_time()

    def over(name: str) -> None:
        nonlocal last
        now = process_time()
        spent[name] = now - last
        last = process_time()

    source = document.read(path)
    over("read: YAML to nodes")
    data = schema.resolve(source, schema.workflow_schema()).data
    over("resolve: nodes to data")
    made = build.build(data, document=source)
    over("build: data to Structs")
    list(linking.link(made, source, linking.Reading.begin(source), workflow._examine))
    over("link: called files, prompts")
    scene = Scene(made)
    over("check: who sees what")
    for rule in (*check.RULES, *check.ADVICE):
        list(rule(scene))
        over(f"check: {rule.__module__.rpartition('.')[2]}.{rule.__name__}")
    found = plan.of(made)
    over("plan")
    assert found.digest
    over("plan: canonical form, digest")
    assert found.step_digests
    over("plan: digest of each step")
    assert found.outline()
    over("plan: outline")
    return spent


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _work(sys.argv[2])
    else:
        main()
