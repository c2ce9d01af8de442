"""Rules for test files that a schema cannot say: steps that are there, answers that are one thing, inputs that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import UNSET

from .. import build, inputs
from ..document import Document
from ..error_types import ERROR_TYPES
from ..errors import InvalidInput, Pointer, Position, Problem, Related
from ..expression import Condition, suggest
from ..plan import Plan
from ..step import Control
from ._moment import moment
from ._paths import Pattern, Steps
from .suite import Answer, Case, Given, Suite

ROOTS = ("status", "outputs", "error", "steps", "state", "calls", "inputs")
"""What `expect.that` sees."""
_TYPE = re.compile(r"http\.[1-5]\d\d|exit\.\d{1,3}|plugin\.[a-z0-9_.]+")
_CLASS = re.compile(r"http\.[1-5]xx|plugin\.\*")


def problems(suite: Suite, document: Document, plan: Plan) -> list[Problem]:
    """Everything that is wrong with a suite whose workflow could be read."""
    return list(_Rules(suite, document, plan).all())


class _Rules:
    def __init__(self, suite: Suite, document: Document, plan: Plan) -> None:
        self.suite = suite
        self.document = document
        self.plan = plan
        self.steps = Steps(plan)

    def all(self) -> Iterator[Problem]:
        yield from self.given(self.suite, ())
        seen: dict[str, Pointer] = {}
        for index, case in enumerate(self.suite.tests):
            at = ("tests", index)
            if case.name in seen:
                first = Related(self.document.position((*seen[case.name], "name")), "the first is here")
                what, hint = f"two tests are called `{case.name}`", "give each a name of its own"
                place = self.document.position((*at, "name"))
                yield self.placed("TRM778", what, (*at, "name"), place, hint, related=(first,))
            seen.setdefault(case.name, at)
            yield from self.given(case, at)
            yield from self.inputs(case, at)
            yield from self.case(case, at)

    def given(self, given: Given, at: Pointer) -> Iterator[Problem]:
        """Stubs, answers, names of secrets and the like."""
        for key, stub in given.stubs.items():
            place = (*at, "stubs", key)
            yield from self.step(key, place, whole=True)
            for index, answer in enumerate(stub if isinstance(stub, tuple) else (stub,)):
                yield from self.answer(answer, (*place, index) if isinstance(stub, tuple) else place)
        for key in given.answers:
            yield from self.gate(key, (*at, "answers", key))
        for index, name in enumerate(given.allow):
            if name not in build.verbs() and name not in self.plan.nodes:
                both = [*build.verbs(), *self.plan.nodes]
                yield self.unknown(f"`{name}` is no verb and no step", name, both, (*at, "allow", index), key=False)
        declared: tuple[tuple[str, Mapping[str, Any], Mapping[str, Any], str], ...] = (
            ("env", given.env, self.plan.workflow.env, "variable in `env`"),
            ("secrets", given.secrets, self.plan.workflow.secrets, "secret"),
        )
        for section, names, known, what in declared:
            for name in names:
                if name not in known:
                    yield self.unknown(
                        f"the workflow declares no {what} `{name}`", name, list(known), (*at, section, name)
                    )
        if given.now is not None and moment(given.now) is None:
            hint = "write it as 2027-01-31T08:00:00Z"
            yield self.problem("TRM778", f"`{given.now}` is no instant", (*at, "now"), hint, key=False)

    def answer(self, answer: Answer, at: Pointer) -> Iterator[Problem]:
        """An answer is one thing."""
        said = [name for name in ("output", "result") if getattr(answer, name) is not UNSET]
        said += [name for name in ("error", "each") if getattr(answer, name)]
        if not said:
            yield self.problem("TRM778", "the stub answers nothing", at, "add `output`, `result`, `error` or `each`")
        elif len(said) > 1 and said != ["output", "result"]:
            what = f"the stub has {' and '.join(f'`{name}`' for name in said)}"
            yield self.problem("TRM778", what, (*at, said[1]), "it answers with one thing: keep one of them")
        if answer.error is not None and not is_type(answer.error.type):
            place = (*at, "error", "type")
            known = [*ERROR_TYPES, "http.404", "http.503", "exit.1"]
            yield self.unknown(
                f"`{answer.error.type}` is no type of an error", answer.error.type, known, place, key=False
            )
        for index, turn in enumerate(answer.each):
            place = (*at, "each", index)
            for number, one in enumerate(turn if isinstance(turn, tuple) else (turn,)):
                yield from self.answer(one, (*place, number) if isinstance(turn, tuple) else place)

    def inputs(self, case: Case, at: Pointer) -> Iterator[Problem]:
        """Inputs as a run would take them."""
        try:
            inputs.bind(self.plan.workflow.inputs, {**self.suite.inputs, **case.inputs})
        except InvalidInput as error:
            name = str(error.details["name"])
            place: Pointer = (*at, "name")
            if name in case.inputs:
                place = (*at, "inputs", name)
            elif name in self.suite.inputs:
                place = ("inputs", name)
            hint = error.hint if "-i " not in (error.hint or "") else f"add `{name}` to `inputs`"
            yield self.problem("TRM779", f"input `{name}` {error.details['what']}", place, hint, key=False)

    def case(self, case: Case, at: Pointer) -> Iterator[Problem]:
        """What is expected, and where the run is cut off."""
        if case.crash_after is not None:
            yield from self.step(case.crash_after, (*at, "crash_after"), key=False)
            if ">" in case.crash_after:
                what, hint = "a run is cut off behind a step of its own", "name the step that calls"
                yield self.problem("TRM778", what, (*at, "crash_after"), hint, key=False)
            if case.crash_everywhere:
                what = "a test has `crash_after` or `crash_everywhere`, not both"
                yield self.problem("TRM778", what, (*at, "crash_everywhere"), "make two tests of it")
        expect = case.expect
        place = (*at, "expect")
        for key, wanted in expect.steps.items():
            yield from self.step(key, (*place, "steps", key))
            if wanted.error is not None:
                yield from self.expected_type(wanted.error.type, (*place, "steps", key, "error", "type"))
        if expect.error is not None:
            yield from self.expected_type(expect.error.type, (*place, "error", "type"))
            if expect.error.step is not None and expect.error.step not in (*self.plan.nodes, "outputs", "env"):
                yield from self.step(expect.error.step, (*place, "error", "step"), key=False)
            if expect.error.path is not None:
                yield from self.step(expect.error.path, (*place, "error", "path"), key=False)
        if isinstance(expect.calls, dict):
            for key in expect.calls:
                yield from self.step(key, (*place, "calls", key))
        elif expect.calls is not UNSET:
            for index, call in enumerate(expect.calls):
                where: Pointer = (*place, "calls", index)
                key = call if isinstance(call, str) else call.step
                yield from self.step(key, where if isinstance(call, str) else (*where, "step"), key=False)
        for index, condition in enumerate(expect.that):
            yield from self.condition(condition, (*place, "that", index))

    def expected_type(self, name: str | None, at: Pointer) -> Iterator[Problem]:
        """A type of an error, or a class of types."""
        if name is not None and not is_type(name) and not _CLASS.fullmatch(name):
            yield self.unknown(f"`{name}` is no type of an error", name, ERROR_TYPES, at, key=False)

    def condition(self, condition: Condition, at: Pointer) -> Iterator[Problem]:
        """A condition that can be read, over names that are there."""
        wrong = list(condition.problems())
        for error in wrong:
            position = self.document.inside(at, error.start, error.end)
            yield self.placed(error.code or "TRM201", error.message, at, position, error.hint)
        uses = [] if wrong else [use for site in condition.sites() for one in site.expressions for use in one.names]
        for use in uses:
            name = str(use.path[0])
            position = self.document.inside(at, use.start, use.end)
            if name not in ROOTS:
                near = suggest(name, ROOTS)
                hint = f"did you mean `{near}`?" if near else f"known here: {', '.join(ROOTS)}"
                yield self.placed("TRM773", f"unknown name `{name}`", at, position, hint)
            elif name in ("steps", "outputs") and len(use.path) > 1:
                known = self.plan.nodes if name == "steps" else self.plan.workflow.outputs
                if use.path[1] not in known and not isinstance(self.steps.find(str(use.path[1])), Pattern):
                    near = suggest(str(use.path[1]), list(known))
                    hint = f"did you mean `{name}.{near}`?" if near else f"{name}: {', '.join(known) or 'none'}"
                    yield self.placed("TRM773", f"there is no `{name}.{use.path[1]}`", at, position, hint)

    def gate(self, key: str, at: Pointer) -> Iterator[Problem]:
        """The gate that somebody answers."""
        found = self.steps.find(key)
        if not isinstance(found, Pattern):
            yield from self.step(key, at)
        elif (gate := self.steps.meant(found)).verb != "gate" or getattr(gate.step, "ask", None) is None:
            yield self.problem("TRM773", f"step `{gate.id}` asks nobody", at, "only a `gate` with `ask` is answered")

    def step(self, name: str, at: Pointer, *, key: bool = True, whole: bool = False) -> Iterator[Problem]:
        """A step that is there; `whole`: one that stands for a container stands for all of it."""
        found = self.steps.find(name)
        if isinstance(found, str):
            what, _, hint = found.partition("; ")
            if not hint:
                what, _, hint = found.partition(": ")
            yield self.problem("TRM773", what, at, hint or f"steps: {', '.join(list(self.plan.nodes)[:12])}", key=key)
        elif whole and isinstance((node := self.steps.meant(found)).step, Control) and not found.anywhere:
            what = f"`{node.id}` holds other steps: a stub can only stand for it everywhere"
            hint = (
                f"write `{self.steps.path(found.id)}`" if found.inner is None else "write it with `[*]`, or as its id"
            )
            yield self.problem("TRM778", what, at, hint, key=key)

    def unknown(self, what: str, name: str, known: Iterable[str], at: Pointer, *, key: bool = True) -> Problem:
        names = list(known)
        near = suggest(name, names)
        hint = f"did you mean `{near}`?" if near else f"known: {', '.join(names[:20]) or 'none'}"
        return self.problem("TRM773", what, at, hint, key=key)

    def problem(self, code: str, what: str, at: Pointer, hint: str | None = None, *, key: bool = True) -> Problem:
        return self.placed(code, what, at, self.document.position(at, key=key), hint)

    @staticmethod
    def placed(
        code: str,
        what: str,
        at: Pointer,
        position: Position,
        hint: str | None,
        related: tuple[Related, ...] = (),
    ) -> Problem:
        return Problem(code=code, message=what, hint=hint, position=position, pointer=at, related=related)


def is_type(name: str) -> bool:
    """Whether an error can be of this type."""
    return name in ERROR_TYPES or _TYPE.fullmatch(name) is not None
