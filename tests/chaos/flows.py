"""The workflows of the chaos: every verb that needs no service, and what each must come to if nothing is lost or done
twice. Their shell steps leave a trace of their own, which is no part of the store: see `effects`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tramai import plan, workflow

_TOP = """\
tramai: 1
name: {name}
inputs:
  n: {{type: integer}}
  pause: {{type: string}}
  effects: {{type: string}}
  program: {{type: string}}
env: {{EFFECTS: "${{{{ inputs.effects }}}}", PROGRAM: "${{{{ inputs.program }}}}", PAUSE: "${{{{ inputs.pause }}}}"}}
state: {{total: {{initial: 0, reduce: sum}}, seen: {{initial: [], reduce: append}}}}
outputs: {{n: "${{{{ inputs.n }}}}", total: "${{{{ state.total }}}}", seen: "${{{{ state.seen }}}}"}}
"""

_DO = "shell: 'sh \"$PROGRAM\"'"
_ONE = 'save: {total: "${{ 1 }}"}'
_MEND = f"{{id: mend, {_DO}, {_ONE}}}"


class Flow(NamedTuple):
    """One workflow: its steps, and what `total` and `seen` are in the end, by `n`."""

    steps: str
    total: Callable[[int], int]
    seen: Callable[[int], list[int]] = lambda n: []
    decided: bool = False
    """Somebody has to decide at its gate."""


FLOWS = {
    "safe": Flow(
        f"""
  - {{id: a, replay: replayable, {_DO}, {_ONE}}}
  - {{id: b, replay: replayable, {_DO}, {_ONE}}}
  - {{id: c, local: "${{{{ inputs.n * 2 }}}}", save: {{total: "${{{{ result }}}}", seen: "${{{{ inputs.n }}}}"}}}}
  - {{id: d, replay: replayable, {_DO}, {_ONE}}}
""",
        lambda n: 3 + 2 * n,
        lambda n: [n],
    ),
    "unsafe": Flow(
        f"""
  - {{id: a, {_DO}, {_ONE}}}
  - {{id: b, local: "${{{{ inputs.n }}}}", save: {{total: "${{{{ result }}}}"}}}}
  - {{id: c, replay: non_replayable, {_DO}, {_ONE}}}
  - {{id: d, replay: idempotent, {_DO}, {_ONE}}}
""",
        lambda n: 3 + n,
    ),
    "fan": Flow(
        f"""
  - id: all
    parallel:
      items: "${{{{ [1, 2, 3, 4] }}}}"
      as: it
      max: 2
      do:
        - {{id: work, replay: idempotent, {_DO}}}
        - {{id: twice, local: "${{{{ it * 2 }}}}"}}
  - {{id: sum, local: "${{{{ steps.all.output | length }}}}", save: {{total: "${{{{ result }}}}"}}}}
""",
        lambda n: 4,
    ),
    "each": Flow(
        f"""
  - id: all
    foreach:
      items: "${{{{ [1, 2, 3] }}}}"
      as: it
      do: [{{id: work, {_DO}, save: {{total: "${{{{ it }}}}", seen: "${{{{ it }}}}"}}}}]
""",
        lambda n: 6,
        lambda n: [1, 2, 3],
    ),
    "wide": Flow(
        f"""
  - id: all
    parallel:
      branches:
        a: [{{id: unsafe, {_DO}}}]
        b: [{{id: safe, replay: replayable, {_DO}}}, {{id: then, replay: idempotent, {_DO}}}]
        c: [{{id: pure, local: "${{{{ inputs.n }}}}"}}]
  - {{id: sum, local: "${{{{ inputs.n }}}}", save: {{total: "${{{{ result }}}}"}}}}
""",
        lambda n: n,
    ),
    "turns": Flow(
        f"""
  - id: round
    repeat:
      max: 9
      delay: 300ms
      until: "${{{{ state.total >= 3 }}}}"
      do:
        - {{id: work, replay: replayable, {_DO}, save: {{total: "${{{{ 1 }}}}", seen: "${{{{ loop.index }}}}"}}}}
""",
        lambda n: 3,
        lambda n: [1, 2, 3],
    ),
    "inner": Flow(
        f"""
  - {{id: deep, {_DO}, {_ONE}}}
  - {{id: rest, delay: 200ms}}
  - {{id: more, replay: idempotent, {_DO}, {_ONE}}}
""",
        lambda n: 2,
    ),
    "calls": Flow(
        f"""
  - {{id: before, replay: replayable, {_DO}, {_ONE}}}
  - id: inner
    call:
      workflow: inner.yaml
      with:
        n: "${{{{ inputs.n }}}}"
        pause: "${{{{ inputs.pause }}}}"
        effects: "${{{{ inputs.effects }}}}"
        program: "${{{{ inputs.program }}}}"
    save: {{total: "${{{{ result.outputs.total }}}}"}}
  - {{id: after, {_DO}, {_ONE}}}
""",
        lambda n: 4,
    ),
    "naps": Flow(
        f"""
  - {{id: first, delay: 1s}}
  - {{id: a, {_DO}, {_ONE}}}
  - {{id: second, delay: {{for: 2s}}}}
  - {{id: b, replay: replayable, {_DO}, {_ONE}}}
""",
        lambda n: 2,
    ),
    "asks": Flow(
        f"""
  - {{id: before, replay: replayable, {_DO}, {_ONE}}}
  - {{id: ask, gate: {{ask: Go on?}}}}
  - {{id: after, replay: non_replayable, {_DO}, {_ONE}}}
""",
        lambda n: 2,
        decided=True,
    ),
    "tries": Flow(
        f"""
  - {{id: again, replay: replayable, shell: 'sh "$PROGRAM" first', retry: {{max_attempts: 40, delay: 100ms}}, {_ONE}}}
  - {{id: never, replay: replayable, shell: 'sh "$PROGRAM" always', catch: [{{output: caught, do: [{_MEND}]}}]}}
  - {{id: last, replay: replayable, {_DO}, {_ONE}}}
finally: [{{id: clean, replay: replayable, {_DO}}}]
""",
        lambda n: 3,
    ),
    "picks": Flow(
        f"""
  - id: way
    branch:
      if: "${{{{ inputs.n > 5 }}}}"
      then: [{{id: high, {_DO}, {_ONE}}}]
      else: [{{id: low, replay: replayable, {_DO}, {_ONE}}}, {{id: lower, replay: idempotent, {_DO}, {_ONE}}}]
  - {{id: last, {_DO}, {_ONE}}}
""",
        lambda n: 2 if n > 5 else 3,
    ),
    "sums": Flow(
        """
  - {id: a, local: "${{ inputs.n + 1 }}", save: {total: "${{ result }}"}}
  - {id: each, foreach: {items: "${{ [1, 2, 3] }}", as: it, do: [
      {id: one, local: "${{ it * 2 }}", save: {total: "${{ result }}", seen: "${{ it }}"}}]}}
  - {id: round, repeat: {max: 5, until: "${{ loop.index >= 3 }}", do: [
      {id: turn, local: "${{ loop.index }}", save: {seen: "${{ result }}"}}]}}
  - {id: way, branch: {if: "${{ inputs.n > 5 }}", else: [], then: [
      {id: high, local: 1, save: {total: "${{ result }}"}}]}}
""",
        lambda n: n + 1 + 12 + (n > 5),
        lambda n: [1, 2, 3, 1, 2, 3],
    ),
    "dozes": Flow(
        """
  - {id: a, local: 1, save: {total: "${{ result }}"}}
  - {id: rest, delay: 700ms}
  - {id: b, local: 2, save: {total: "${{ result }}", seen: "${{ inputs.n }}"}}
""",
        lambda n: 3,
        lambda n: [n],
    ),
    "few": Flow(
        f"""
  - {{id: a, replay: replayable, {_DO}, {_ONE}}}
  - {{id: b, {_DO}, {_ONE}}}
concurrency: {{group: few, limit: 2}}
""",
        lambda n: 2,
    ),
}
"""By name. `inner` is only called."""


def policy(name: str, path: str) -> str:
    """What may be done again of a shell step: the `replay` of its workflow's file, `non_replayable` without one."""
    step = re.escape(path.rpartition(".")[2])
    found = re.search(rf"\{{id: {step}, (?:replay: (\w+), )?shell:", FLOWS[name].steps)
    if found is None:
        raise ValueError(f"{path} is no shell step of {name}")
    return found[1] or "non_replayable"


def write(folder: Path) -> None:
    """Put the workflow files into a folder."""
    for name, flow in FLOWS.items():
        (folder / f"{name}.yaml").write_text(f"{_TOP.format(name=name)}steps:{flow.steps}", encoding="utf-8")


def load(folder: Path) -> dict[str, plan.Plan]:
    """The workflows of a folder that are started by somebody, by name."""
    return {name: plan.of(workflow.load(str(folder / f"{name}.yaml"))) for name in FLOWS if name != "inner"}
