"""E. `validate` of a large file, against merely reading it with PyYAML's C loader.

    python3 bench/e_validate.py [rounds=9]

The file has 1,000 steps of seven kinds, some 17,000 lines and 2,100 expressions. A file may not be larger than 1 MiB,
so the growth to 10,000 steps is measured with small steps of two lines.
"""

from __future__ import annotations

from lib import Report, Sample, in_turn, median, peak, program, ratio, rounds_wanted, timed, workplace

LOAD = "import sys, yaml; yaml.load(open(sys.argv[1], encoding='utf-8'), yaml.CSafeLoader)"
STEPS = 1000

HEAD = """\
tramai: 1
name: large
version: "1"
description: A large workflow, made for a measurement.

inputs:
  repo: {type: string, default: ".", description: Path of the repository.}
  level: {type: string, enum: [low, medium, high], default: low}
  count: {type: integer, minimum: 0, default: 3}
  tags: {type: array, items: {type: string}, default: [a, b]}

env:
  REPO: ${{ inputs.repo }}

limits: {max_step_executions: 100000, max_parallel_branches: 8}

state:
  total: {initial: 0}

steps:
"""

KINDS = (
    """\
  - id: build_NNN
    description: Builds part NNN and says how large it is.
    shell:
      run: |
        set -eu
        echo "part NNN at level $LEVEL" >&2
        test -d "$REPO" || exit 1
        printf '{"part": NNN, "size": %d}' "$COUNT"
      env:
        LEVEL: ${{ inputs.level }}
        COUNT: "NNN"
      parse: json
      ok_exit_codes: [0]
    timeout: 5m
    retry: {max_attempts: 3, delay: 1s, backoff: 2.0, on: [exit]}
    replay: idempotent
""",
    """\
  - id: fetch_NNN
    when: ${{ inputs.count > 0 and inputs.level != "low" }}
    http:
      post: https://example.org/api/parts/NNN
      query:
        level: ${{ inputs.level | upper }}
        tag: ["one", "two"]
      headers:
        accept: application/json
        x-part: "NNN"
      json:
        id: NNN
        title: Part NNN of the repository
        tags: ${{ inputs.tags | sort | join(",") }}
      expect_status: [200, 201]
      max_response: 1MiB
    timeout: 30s
    retry: {max_attempts: 4, delay: 2s, on: [network, timeout, http.5xx]}
""",
    """\
  - id: table_NNN
    # What the later steps read.
    local:
      value:
        number: NNN
        share: 0.25
        names: ${{ inputs.tags | map("upper") | list }}
        label: "part NNN (of all)"
        nested:
          first: plain text that fills the line a little, as people write
          second: 'quoted: with a colon'
          third: [1, 2.5, true, null]
    save:
      total: ${{ state.total + result.number }}
    output: ${{ result.nested }}
""",
    """\
  - id: each_NNN
    parallel:
      items: ${{ inputs.tags }}
      as: tag
      key: ${{ tag }}
      max: 4
      do:
        - id: look_NNN
          shell:
            argv:
              - grep
              - -c
              - ${{ tag }}
              - README.md
            ok_exit_codes: [0, 1]
          replay: replayable
    timeout: 10m
""",
    """\
  - id: ask_NNN
    ai:
      model: demo:echo
      system: You read parts of a code base. Be brief.
      prompt: |
        Part NNN at level ${{ inputs.level }}, with these tags:
        {% for tag in inputs.tags %}
        - ${{ tag }}
        {% endfor %}
        How risky is it?
      schema:
        type: object
        required: [risk]
        properties:
          risk: {enum: [low, medium, high]}
    timeout: 2m
""",
    """\
  - id: way_NNN
    branch:
      select: ${{ steps.ask_PPP.output.risk }}
      cases:
        high:
          - id: careful_NNN
            local: >-
              Two people should read part NNN
              before it is merged.
        low:
          - id: easy_NNN
            local: One reader will do.
      default:
        - id: usual_NNN
          local:
            value: {text: Read part NNN as usual., level: usual}
""",
    """\
  - id: gate_NNN
    description: >
      Nothing goes on while part NNN
      is not as it should be.
    gate:
      check: ${{ state.total >= 0 and inputs.count < 1000 + NNN }}
      reason: part NNN has less than nothing
    replay: replayable
    output:
      part: NNN
      total: ${{ state.total }}
      passed: true
      words: >-
        Some words about part NNN, which are here
        because files have such words.
""",
)


def realistic(steps: int) -> str:
    """A file with that many steps at the top, of all kinds in turn."""
    parts = []
    for number in range(steps):
        text = KINDS[number % len(KINDS)]
        parts.append(text.replace("PPP", str(number - 1)).replace("NNN", str(number)))
    return HEAD + "\n".join(parts) + "\noutputs:\n  total: ${{ state.total }}\n"


def small(steps: int) -> str:
    """A file of two lines a step, each with an expression of its own."""
    parts = [f"  - id: s{number}\n    local: ${{{{ inputs.count + {number} }}}}\n" for number in range(steps)]
    return HEAD + "".join(parts)


def main() -> None:
    report = Report("e_validate", f"E. `validate` of {STEPS:,} steps: CPU against merely loading the file with PyYAML")
    loader, command = program("pyyaml"), program("tramai", "tramai")
    files = {"large.yaml": realistic(STEPS), "tenth.yaml": realistic(STEPS // 10)}
    files |= {f"small{steps}.yaml": small(steps) for steps in (1, STEPS, STEPS * 10)}
    contenders = {
        "python, import yaml": [loader, "-c", "import yaml"],
        "python, PyYAML C loader": [loader, "-c", LOAD, "large.yaml"],
        "tramai validate": [command, "validate", "large.yaml"],
        "tramai validate, 100 steps": [command, "validate", "tenth.yaml"],
    }
    names = {steps: f"tramai validate, {steps:,} small" for steps in (1, STEPS, STEPS * 10)}
    contenders |= {names[steps]: [command, "validate", f"small{steps}.yaml"] for steps in names}
    contenders |= {f"PyYAML C loader, {steps:,} small": [loader, "-c", LOAD, f"small{steps}.yaml"] for steps in names}
    with workplace(disk=False) as folder:
        for name, text in files.items():
            (folder / name).write_text(text)
        for argv in contenders.values():
            timed(argv, folder)
        found = in_turn(rounds_wanted(9), contenders, lambda argv: timed(argv, folder))
        peaks = {label: peak(contenders[label], folder) for label in found}
    base = found["python, PyYAML C loader"]
    times = {label: ratio(samples, base) for label, samples in found.items()}
    report.table(
        ["contender", "cpu ms", "x loading", "peak MiB"],
        [(label, median(samples) * 1e3, times[label], peaks[label]) for label, samples in found.items()],
    )
    one, thousand, ten_thousand = (found[name] for name in names.values())
    growth = ratio(_beyond(ten_thousand, one), _beyond(thousand, one))
    text = files["large.yaml"]
    shape = (float(text.count("\n")), float(text.count("${{")), len(text) / 1024)
    report.table(["the file", "lines", "expressions", "KiB"], [("large.yaml", *shape)])
    report.goals(
        [
            ("validate, 1,000 steps, against loading", 3.0, 1.0, times["tramai validate"]),
            ("growth from 1,000 to 10,000 steps", 12.0, 10.0, growth),
        ]
    )


def _beyond(samples: list[Sample], start: list[Sample]) -> list[Sample]:
    """What the steps cost, the start of the command left out."""
    return [{"cpu": ours["cpu"] - theirs["cpu"]} for ours, theirs in zip(samples, start, strict=True)]


if __name__ == "__main__":
    main()
