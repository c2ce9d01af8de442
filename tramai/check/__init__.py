"""Rules that a schema cannot say: names, order, secrets, state and settings; one function per rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..definition import Workflow
from ..errors import Problem
from . import ids, permitted, references, schedules, schemas, secrets, settings, state, texts, types, verification
from .scene import Scene

Rule = Callable[[Scene], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    ids.unique,
    ids.declared,
    texts.syntax,
    texts.never_templated,
    references.names,
    references.outputs,
    secrets.sources,
    secrets.sinks,
    types.fit,
    types.settings,
    state.declared,
    state.side_by_side,
    schemas.valid,
    schemas.initial_values,
    schemas.inputs,
    schemas.forms,
    permitted.entries,
    permitted.covered,
    schedules.times,
    schedules.inputs,
    settings.of_verbs,
    settings.times,
    settings.sizes,
    settings.retries,
    settings.loop_names,
    settings.cases,
    verification.asked,
    verification.possible,
)


def problems(workflow: Workflow) -> tuple[Problem, ...]:
    """Everything the rules find in a workflow, in order of the file."""
    scene = Scene(workflow)
    found = {
        (problem.code, problem.pointer, problem.position, problem.message): problem
        for rule in RULES
        for problem in rule(scene)
    }
    return tuple(sorted(found.values(), key=Problem.sort_key))
