"""The digest of any workflow: no formatting changes it, any change of meaning does, and it is the same everywhere."""

from __future__ import annotations

import functools
import json
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests import spellings
from tests.changes_of_meaning import CHANGES, Thunk, put, swapped, varied
from tests.workflows_at_random import CONTAINERS, LEAVES, Drawn, at_random, steps_of, verb_of, workflows
from tramai import build, document, plan, workflow
from tramai.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(__file__).parent / "data" / "digests.json"
QUICK = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # to make a failure smaller takes minutes; `-m slow` does
)
LONG = settings(QUICK, max_examples=1500, derandomize=bool(os.environ.get("CI")), phases=[Phase.generate, Phase.shrink])
RANDOM = st.integers(0, 2**32).map(random.Random)


def planned(files: dict[str, bytes]) -> Plan | None:
    """The plan of the first of these files; None when it has errors."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        main = Path(folder, next(iter(files)))
        found, problems = workflow.examine(document.read(str(main)))
    errors = [problem.message for problem in problems if problem.severity == "error"]
    assert (found is None) == bool(errors)
    return plan.of(found) if found is not None else None


def sure(files: dict[str, bytes]) -> Plan:
    """The same of files that must have no error."""
    made = planned(files)
    assert made is not None, next(iter(files.values())).decode()
    return made


def leaves(made: Plan) -> dict[str, str]:
    return {id: str(node.replay) for id, node in made.nodes.items() if node.verb in LEAVES}


def has_one_digest(drawn: Drawn, chance: random.Random, times: int) -> None:
    base = sure(spellings.plain(drawn))
    for _ in range(times):
        files = spellings.files(drawn, chance, leaves(base))
        other = sure(files)
        assert other.canonical == base.canonical, next(iter(files.values())).decode()
        assert (other.digest, other.step_digests) == (base.digest, base.step_digests)
        assert other.workflow.version == base.workflow.version


@QUICK
@given(workflows(), RANDOM)
def test_no_formatting_changes_the_digest(drawn: Drawn, chance: random.Random) -> None:
    has_one_digest(drawn, chance, 3)


@pytest.mark.slow
@LONG
@given(workflows(), RANDOM)
def test_no_formatting_changes_the_digest_of_a_great_many(drawn: Drawn, chance: random.Random) -> None:
    has_one_digest(drawn, chance, 5)


@QUICK
@given(workflows())
def test_a_stored_canonical_form_has_the_digest_of_its_file(drawn: Drawn) -> None:
    made = sure(spellings.plain(drawn))
    again = plan.restore(made.canonical, made.workflow.version)
    assert (again.canonical, again.digest, again.step_digests) == (made.canonical, made.digest, made.step_digests)


# Changes of meaning.


@functools.cache
def sample() -> tuple[Drawn, ...]:
    """Some workflows, the same ones in every process."""
    return tuple(at_random(random.Random(number).randrange, most=8) for number in range(80))


def changed(drawn: Drawn, name: str) -> Iterator[tuple[Plan, Drawn]]:
    """What becomes of a workflow by a change, at each place where it leaves a workflow without an error."""
    count = sum(1 for _ in CHANGES[name](drawn.copy()))
    for index in range(count):
        other = drawn.copy()
        list(CHANGES[name](other))[index]()
        made = planned(spellings.plain(other))
        if made is not None:
            yield made, other


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_meaning_changes_the_digest(name: str) -> None:
    for one in sample():
        for made, other in changed(one, name):
            assert made.digest != sure(spellings.plain(one)).digest, other.tree
            return
    pytest.fail("there is no workflow in the sample in which this can be changed")


def anywhere(drawn: Drawn) -> list[Thunk]:
    """Every value varied, every key taken away, every two neighbours exchanged: wherever it has a meaning."""
    found: list[Thunk] = []
    # It may say what would hold anyway.
    silent = {"replay"}.union(*drawn.tree.get("defaults", {}).values())

    def look(around: Any, key: Any, value: Any) -> None:
        if isinstance(value, dict):
            for name in list(value):
                if name not in ("tramai", "version", "defaults"):
                    look(value, name, value[name])
                    if name not in silent:
                        found.append(lambda name=name: value.pop(name))  # type: ignore[misc]
        elif isinstance(value, list):
            for index, item in enumerate(value):
                look(value, index, item)
            if value and isinstance(value[0], dict):
                found.extend(swapped(value))
        else:
            found.append(put(around, key, varied(value)))

    look(None, None, drawn.tree)
    for name in drawn.beside:
        look(drawn.beside, name, drawn.beside[name])
    return found


def tells_a_change(drawn: Drawn, chance: random.Random) -> None:
    base = sure(spellings.plain(drawn))
    for _ in range(4):
        other = drawn.copy()
        chance.choice(anywhere(other))()
        if (other.tree, other.beside) == (drawn.tree, drawn.beside):
            continue  # two equal neighbours
        made = planned(spellings.plain(other))
        if made is not None:
            assert made.digest != base.digest, (drawn.tree, other.tree)


@QUICK
@given(workflows(), RANDOM)
def test_any_small_change_that_leaves_a_workflow_changes_the_digest(drawn: Drawn, chance: random.Random) -> None:
    tells_a_change(drawn, chance)


@pytest.mark.slow
@LONG
@given(workflows(), RANDOM)
def test_any_small_change_changes_the_digest_of_a_great_many(drawn: Drawn, chance: random.Random) -> None:
    tells_a_change(drawn, chance)


def test_any_workflow_has_every_verb_now_and_then() -> None:
    # A new verb needs a `_verb` in tests/workflows_at_random.py.
    assert {*LEAVES, *CONTAINERS} == build.verbs()
    assert {verb_of(step) for one in sample() for step in steps_of(one.tree)} == build.verbs()


# The same everywhere: digests that were computed once.


def shown() -> dict[str, str]:
    """The digest of every example."""
    files = [path for path in (ROOT / "workflows").rglob("*.[yt]*ml") if ".tramai-test." not in path.name]
    files += [ROOT / "tests" / "data" / "everything.yaml"]
    return {path.relative_to(ROOT).as_posix(): plan.load(str(path)).digest for path in sorted(files)}


def test_the_examples_have_the_digests_that_they_had_on_another_machine() -> None:
    # After a change of an example: python -m tests.test_digest_properties
    # If no example has changed, then no run that was started before could be resumed: that is a new version of the
    # language, not a new file.
    assert shown() == json.loads(GOLDEN.read_text(encoding="utf-8"))


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(shown(), indent=2, sort_keys=True) + "\n", encoding="utf-8")
