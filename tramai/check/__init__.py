"""Rules that a schema cannot say: names, order, secrets, state and settings; one function per rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..definition import Workflow
from ..errors import Problem
from . import (
    calls,
    concurrency,
    empty,
    foreign,
    ids,
    neighbours,
    permitted,
    races,
    reachable,
    redoing,
    references,
    schedules,
    schemas,
    secrets,
    settings,
    state,
    texts,
    types,
    unused,
    verification,
)
from .scene import Scene

Rule = Callable[[Scene], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    ids.unique,
    ids.declared,
    empty.lists,
    texts.syntax,
    texts.never_templated,
    foreign.templates,
    concurrency.group,
    references.names,
    references.outputs,
    secrets.sources,
    secrets.sinks,
    types.fit,
    types.settings,
    state.declared,
    state.side_by_side,
    state.reduces,
    calls.fit,
    schemas.valid,
    schemas.initial_values,
    schemas.inputs,
    schemas.forms,
    redoing.targets,
    permitted.entries,
    permitted.covered,
    schedules.times,
    schedules.inputs,
    settings.of_verbs,
    settings.times,
    settings.sizes,
    settings.retries,
    settings.catches,
    settings.loop_names,
    settings.cases,
    verification.asked,
    verification.possible,
)

ADVICE: tuple[Rule, ...] = (unused.declared, reachable.reached, races.reads, neighbours.apart)
"""Warnings of `validate` alone, for a file without errors: half of a file would be taken for what is missing in it."""


def problems(workflow: Workflow) -> tuple[Problem, ...]:
    """Everything the rules find in a workflow, in order of the file."""
    scene = Scene(workflow)
    found = {
        (problem.code, problem.pointer, problem.position, problem.message): problem
        for rule in RULES
        for problem in rule(scene)
    }
    return tuple(sorted(found.values(), key=Problem.sort_key))


def advice(workflow: Workflow) -> tuple[Problem, ...]:
    """What can hardly be meant in a workflow without errors, in order of the file: warnings, all of them."""
    scene = Scene(workflow)
    return tuple(sorted((problem for rule in ADVICE for problem in rule(scene)), key=Problem.sort_key))
