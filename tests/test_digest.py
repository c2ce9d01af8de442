"""The digest: the same for every spelling of a definition, another for every other definition."""

import copy
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tramai import build, plan

from .reading import HEAD, planned

BASE = """\
tramai: 1
name: demo
version: "3"
inputs:
  repo: {type: string, pattern: '^[a-z]+$'}
  limit: {type: integer, default: 20}
env: {REGION: eu}
limits: {timeout: 2h, max_parallel_branches: 4}
state: {total: {initial: 0}}
steps:
  - id: fetch
    shell:
      run: |
        echo one

        echo two
      env: {REPO: "${{ inputs.repo }}"}
    retry: {max_attempts: 3, delay: 1s}
  - id: choice
    branch:
      select: ${{ inputs.repo }}
      cases:
        a: [{id: deep, local: 1}]
        b: []
      default: []
  - id: ask
    ai: {model: "demo:echo", prompt: "How risky is ${{ steps.fetch.output.stdout }}?"}
outputs: {answer: "${{ steps.ask.output }}"}
"""

SAME = {
    "comments": BASE.replace("steps:", "# a comment\nsteps:  # another"),
    "blank lines": BASE.replace("steps:", "\n\nsteps:"),
    "CRLF": BASE.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + BASE,
    "a byte order mark and CRLF": "\ufeff" + BASE.replace("\n", "\r\n"),
    "mixed line ends": BASE.replace("\n", "\r\n", 8),
    "quotes": BASE.replace("name: demo", "name: 'demo'").replace("repo:", '"repo":', 1),
    "double quotes": BASE.replace("'^[a-z]+$'", '"^[a-z]+$"'),
    "order of keys at the top": BASE.replace("name: demo\n", "").replace("env: {REG", "name: demo\nenv: {REG"),
    "order of keys in a step": BASE.replace("  - id: choice\n    branch:", "  - branch:").replace(
        "      default: []\n", "      default: []\n    id: choice\n"
    ),
    "order of cases": BASE.replace("        b: []\n", "").replace("        a: [", "        b: []\n        a: ["),
    "indentation": BASE.replace("  limit: {", "  limit:    {").replace("    retry: {", "    retry:\n      {"),
    "block instead of flow": BASE.replace("env: {REGION: eu}", "env:\n  REGION: eu"),
    "an anchor and its alias": BASE.replace("max_parallel_branches: 4", "max_parallel_branches: &four 4").replace(
        "initial: 0", "initial: 4"
    ).replace("initial: 4", "initial: 0"),
    "a default written out": BASE.replace("limits: {", "limits: {max_step_executions: 1000, "),
    "the verb's own replay written out": BASE.replace("  - id: ask\n", "  - id: ask\n    replay: replayable\n"),
    "the long form": BASE.replace("local: 1", "local: {value: 1}"),
    "another spelling of a duration": BASE.replace("2h", "PT2H").replace("delay: 1s", "delay: 1000ms"),
    "a whole float": BASE.replace("default: 20", "default: 20.0"),
    "descriptions": BASE.replace("name: demo", "name: demo\ndescription: d").replace(
        "- id: ask", "- id: ask\n    description: d"
    ).replace("default: 20", "default: 20, description: d"),
    "free keys": BASE.replace("name: demo", "name: demo\nx-a: 1\n$schema: s").replace(
        "- id: ask", "- id: ask\n    x-b: 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_what_changes_no_meaning_changes_no_digest(what: str) -> None:
    assert SAME[what] != BASE
    made, base = planned(SAME[what]), planned(BASE)
    assert made.canonical == base.canonical
    assert (made.digest, made.step_digests) == (base.digest, base.step_digests)


def test_the_name_and_place_of_the_file_change_no_digest(tmp_path: Path) -> None:
    from tramai import workflow

    digests = set()
    for name in ("a.yaml", "b.yml", "deep/c.yaml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(BASE)
        digests.add(plan.of(workflow.load(str(file))).digest)
    assert len(digests) == 1


CHANGES = {
    "the name": ("name: demo", "name: demo2"),
    "a command": ("echo two", "echo three"),
    "a blank line in a command": ("\n\n        echo two", "\n        echo two"),
    "white space at the end of a command": ("echo two", "echo two "),
    "a prompt": ("How risky", "How safe"),
    "a step id": ("id: deep", "id: deeper"),
    "a case": ("        b: []", "        c: []"),
    "a branch taken away": ("        b: []\n", ""),
    "a limit": ("max_parallel_branches: 4", "max_parallel_branches: 5"),
    "the timeout": ("2h", "3h"),
    "a retry": ("max_attempts: 3", "max_attempts: 4"),
    "a delay": ("delay: 1s", "delay: 2s"),
    "a default": ("default: 20", "default: 21"),
    "the type of a default": ("{type: integer, default: 20}", "{type: string, default: 20}"),
    "a pattern": ("^[a-z]+$", "^[a-z]*$"),
    "an environment variable": ("REGION: eu", "REGION: us"),
    "the name of a variable": ("REGION:", "REGIO:"),
    "state": ("initial: 0", "initial: 1"),
    "the type of state": ("initial: 0", 'initial: "0"'),
    "an output": ("answer: ", "reply: "),
    "an expression": ("select: ${{ inputs.repo }}", "select: ${{ inputs.repo | lower }}"),
    "a condition": ("  - id: ask\n", "  - id: ask\n    when: ${{ true }}\n"),
    "a replay policy": ("  - id: ask\n", "  - id: ask\n    replay: idempotent\n"),
    "a schema": ("  - id: ask\n", "  - id: ask\n    schema: {type: string}\n"),
    "a verb": ("{id: deep, local: 1}", "{id: deep, shell: '1'}"),
    "a value": ("{id: deep, local: 1}", "{id: deep, local: true}"),
    "the type of a value": ("{id: deep, local: 1}", '{id: deep, local: "1"}'),
    "a step taken away": ("[{id: deep, local: 1}]", "[]"),
    "a step added": ("[{id: deep, local: 1}]", "[{id: deep, local: 1}, {id: more, local: 1}]"),
    "the order of steps": (
        "[{id: deep, local: 1}]\n        b: []",
        "[]\n        b: [{id: deep, local: 1}]",
    ),
}


def test_every_change_of_meaning_changes_the_digest() -> None:
    digests = {"nothing": planned(BASE).digest}
    for what, (old, new) in CHANGES.items():
        assert old in BASE, what
        digests[what] = planned(BASE.replace(old, new, 1)).digest
    assert len(set(digests.values())) == len(digests)


def test_the_version_stands_beside_the_digest() -> None:
    one, other = planned(BASE), planned(BASE.replace('version: "3"', 'version: "4"'))
    assert one.digest == other.digest
    assert one.workflow.version != other.workflow.version


TOML = """\
tramai = 1
name = "demo"
version = "3"
env = {REGION = "eu"}
limits = {timeout = "2h", max_parallel_branches = 4}
outputs = {answer = "${{ steps.ask.output }}"}
[inputs]
repo = {type = "string", pattern = '^[a-z]+$'}
limit = {type = "integer", default = 20}
[state.total]
initial = 0
[[steps]]
id = "fetch"
shell.run = '''
echo one

echo two
'''
shell.env.REPO = "${{ inputs.repo }}"
retry = {max_attempts = 3, delay = "1s"}
[[steps]]
id = "choice"
[steps.branch]
select = "${{ inputs.repo }}"
default = []
[steps.branch.cases]
a = [{id = "deep", local = 1}]
b = []
[[steps]]
id = "ask"
ai = {model = "demo:echo", prompt = "How risky is ${{ steps.fetch.output.stdout }}?"}
"""


@pytest.mark.parametrize("text", [TOML, TOML.replace("\n", "\r\n"), "\ufeff" + TOML, "# comment\n" + TOML])
def test_toml_has_the_digest_of_the_same_yaml(text: str) -> None:
    assert planned(text, format="toml").canonical == planned(BASE).canonical


def test_the_digest_is_the_same_in_every_process_and_for_ever(tmp_path: Path) -> None:
    # A change here means that no run started before can be resumed: it needs a new version of the language.
    file = tmp_path / "w.yaml"
    file.write_text(BASE)
    program = f"from tramai import plan, workflow; print(plan.of(workflow.load({str(file)!r})).digest)"
    shown = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert shown == {planned(BASE).digest}
    assert planned(BASE).digest == DIGEST


DIGEST = "bb5cd0ec765f84f25f5e8955c123ef5326a772fd494123411c29ae29f43df7c4"

# Any data, in any order and spelling.

keys = st.text("ab.é -", min_size=1, max_size=4)
json_values = st.recursive(
    st.booleans() | st.integers(-(10**25), 10**25) | st.floats(-1e9, 1e9) | st.text("abé\"'\\{}:#-\n ~0", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    names = st.text("abc_", min_size=1, max_size=4).map(lambda id: f"s{id}")
    ids = draw(st.lists(names, unique=True, min_size=1, max_size=5))
    made = []
    for id in ids:
        step: dict[str, Any] = {"id": id, "local": {"value": draw(json_values)}}
        if draw(st.booleans()):
            step["timeout"] = draw(st.sampled_from(["1s", "90s", "2h"]))
        made.append(step)
    return {"tramai": 1, "name": draw(st.sampled_from(["one", "two"])), "steps": made}


def shuffled(data: Any, chance: random.Random) -> Any:
    if isinstance(data, dict):
        pairs = list(data.items())
        chance.shuffle(pairs)
        return {key: shuffled(value, chance) for key, value in pairs}
    if isinstance(data, list):
        return [shuffled(item, chance) for item in data]
    return data


def to_toml(data: Any) -> str:
    if isinstance(data, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {to_toml(value)}" for key, value in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(map(to_toml, data)) + "]"
    return json.dumps(data, ensure_ascii=True) if not isinstance(data, float) else f"{data!r}"


@settings(max_examples=60, deadline=None)
@given(definitions(), st.randoms(use_true_random=False))
def test_any_definition_has_one_digest_in_every_order_and_format(data: dict[str, Any], chance: random.Random) -> None:
    base = plan.of(build.build(copy.deepcopy(data)))
    yaml = json.dumps(shuffled(data, chance), ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 2]))
    assert planned(yaml.replace("\x7f", "")).canonical == base.canonical
    toml = "\n".join(f"{key} = {to_toml(value)}" for key, value in shuffled(data, chance).items())
    whole = all(abs(value) < 2**63 for value in integers(data))
    if whole:
        assert planned(toml, format="toml").canonical == base.canonical


def integers(data: Any) -> list[int]:
    if isinstance(data, dict):
        return [number for value in data.values() for number in integers(value)]
    if isinstance(data, list):
        return [number for item in data for number in integers(item)]
    return [data] if isinstance(data, int) else []


@settings(max_examples=60, deadline=None)
@given(definitions(), definitions())
def test_two_definitions_share_a_digest_only_when_they_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    left, right = plan.of(build.build(copy.deepcopy(one))), plan.of(build.build(copy.deepcopy(other)))
    assert (left.digest == right.digest) == (left.data == right.data and left.canonical == right.canonical)


NUMBERS = [
    "9007199254740992",
    "9007199254740993",
    "738529527931269425",
    "738529527931269376",
    "0.1",
    "0.10000000000000002",
]


def test_big_integers_and_small_differences_count() -> None:
    text = HEAD + "steps:\n  - {id: a, local: {value: 1}}\n"
    assert len({planned(text.replace("value: 1", f"value: {number}")).digest for number in NUMBERS}) == len(NUMBERS)
