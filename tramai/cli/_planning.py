"""What can be said of a run before it starts: conditions that the inputs decide, effects, attempts, turns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from .. import reach
from ..expression import Condition, ExpressionError, Template, Text, Value, evaluate, render_text
from ..plan import Plan, of
from ..step import Block, Control, Node, Step
from ..target import Target
from ._plan_documents import PlannedBlock, PlannedConcurrency, PlannedExecutions, PlannedPermits, PlannedStep

LONGEST = 80


class Unknown(Exception):
    """A value depends on something that only the run will tell."""


class Planner:
    """Walks a plan with the inputs that are given; outputs of expressions over them are known, too."""

    def __init__(self, made: Plan, bound: Mapping[str, Any]) -> None:
        self._made = made
        self._scope: dict[str, Any] = {"inputs": bound, "steps": {}}

    def block(self, block: Block, known: bool = True) -> list[PlannedStep]:
        """The steps of a block. `known`: it runs once, so that its outputs can be read."""
        return [self._step(node, known) for node in block]

    def _step(self, node: Node, known: bool) -> PlannedStep:
        decided = self._test(node.when) if node.when is not None else None
        sure = known and (node.when is None or decided is True)
        line, column = self._made.place(node.id) or (None, None)
        if sure:
            self._learn(node)
        return PlannedStep(
            id=node.id,
            verb=node.verb,
            replay=str(node.replay),
            when=node.when.text if node.when is not None else None,
            decided=decided,
            pure=isinstance(node.step, Control) or node.step.pure(),
            spawns=node.step.spawning(),
            reaches=self._reaches(node.step),
            verify=_verify(node),
            max_attempts=node.retry.max_attempts if node.retry is not None else 1,
            timeout=_seconds(node.timeout),
            deadline=_seconds(node.deadline),
            turns=self._turns(node.step),
            line=line,
            column=column,
            blocks=list(self._blocks(node, sure and decided is not False)),
        )

    def _blocks(self, node: Node, sure: bool) -> Iterator[PlannedBlock]:
        for target in _called(node.step):
            yield PlannedBlock(label=target.path, steps=self._child(node.step, target))
        taken = self._taken(node.step)
        once = getattr(node.step, "binds", tuple)() == () and node.verb != "repeat"
        for _, label, block in node.blocks():
            chosen = None if taken is None or label == "catch" else label == taken
            yield PlannedBlock(
                label=label, taken=chosen, steps=self.block(block, sure and once and chosen is not False)
            )

    def _child(self, step: Step, target: Target) -> list[PlannedStep]:
        """The steps of a called workflow, with the inputs that are known already."""
        child = of(target.workflow)  # type: ignore[arg-type]
        given = {}
        for name, spec in child.workflow.inputs.items():
            source = getattr(step, "with_", {}).get(name)
            if source is None and spec.default is not msgspec.UNSET:
                given[name] = spec.default
            elif source is not None:
                with contextlib.suppress(Unknown):
                    given[name] = self._value(source)
        planner = Planner(child, given)
        last = child.workflow.finally_
        return planner.block(child.workflow.steps) + (planner.block(last, known=False) if last is not None else [])

    def _taken(self, step: Step) -> str | None:
        """The block that a branch will take."""
        with contextlib.suppress(Unknown, AttributeError):
            condition, select = getattr(step, "if_", None), getattr(step, "select", None)
            if condition is not None:
                holds = self._value(condition)
                return {True: "then", False: "else"}.get(holds)
            if select is not None:
                key = _key(self._value(select))
                return key if key in (getattr(step, "cases", None) or {}) else "default"
        return None

    def _turns(self, step: Step) -> int | None:
        items, most = getattr(step, "items", None), getattr(step, "max", None)
        if isinstance(items, Value | Template):
            with contextlib.suppress(Unknown):
                found = self._value(items)
                return len(found) if isinstance(found, list) else None
            return None
        if isinstance(step, Control) and getattr(step, "until", None) is not None:
            return most if isinstance(most, int) else None
        return None

    def _learn(self, node: Node) -> None:
        """Keep the output of an expression for the conditions behind it."""
        value = getattr(node.step, "value", None)
        if node.verb != "local" or value is None or node.output is not None:
            return
        with contextlib.suppress(Unknown):
            self._scope["steps"][node.id] = {"output": self._value(value), "status": "succeeded"}

    def _test(self, condition: Condition) -> bool | None:
        with contextlib.suppress(Unknown):
            value = self._value(condition)
            return value if isinstance(value, bool) else None
        return None

    def _value(self, source: Template | Value) -> Any:
        if not self._known(source):
            raise Unknown
        try:
            return evaluate(source, self._scope)
        except ExpressionError:
            raise Unknown from None

    def _known(self, source: Template | Value) -> bool:
        """Whether all names in it have a value already."""
        for use in (use for site in source.sites() for one in site.expressions for use in one.names):
            root, name = use.path[0], use.path[1] if len(use.path) > 1 else None
            if root not in ("inputs", "steps") or name not in self._scope[root]:
                return False
        return True

    def _text(self, source: Any) -> str:
        """A text as far as it is known; expressions that are not stand as they are written."""
        if not isinstance(source, Template):
            return str(source)
        if not self._known(source):
            return source.text
        try:
            return render_text(source, self._scope)
        except ExpressionError:
            return source.text

    def _reaches(self, step: Step) -> str | None:
        """What a step does outside, in a few words: none of it is made up, all of it stands in the file."""
        request = getattr(step, "target", None)
        if request is not None:
            method, url = request()
            return f"{method.upper()} {_cut(self._text(url))}"
        argv = getattr(step, "argv", None)
        if argv:
            return _cut(" ".join(self._text(item) for item in argv))
        script = getattr(step, "run_", None)
        if isinstance(script, str):
            return _cut(script.strip().splitlines()[0] if script.strip() else "")
        model = getattr(step, "model", None)
        if isinstance(model, Text):
            return f"model {self._text(model)}{_tools(step)}"
        for target in _called(step):
            return f"runs {target.path}"
        used = getattr(step, "use", None)
        if isinstance(used, str):
            return f"plugin {used.partition('@')[0]}"
        function = getattr(step, "call", None)
        return f"calls {function}" if isinstance(function, str) else None


def _tools(step: Step) -> str:
    """What a model may use, in a few words."""
    names: list[str] = []
    for one in getattr(step, "tools", ()):
        names += [one.called_as()] if one.workflow is not None else one.tools
    return f" with {_cut(', '.join(names))}" if names else ""


def _called(step: Step) -> list[Target]:
    """The workflows that a step runs, once their files were read."""
    return [target for _, target in step.called() if target.workflow is not None]


def executions(made: Plan, steps: Iterable[PlannedStep]) -> PlannedExecutions:
    """How many step executions a run will take: of leaf steps, as the limit counts them."""
    every = list(steps)
    return PlannedExecutions(
        least=sum(_least(step) for step in every),
        most=_sum(_most(step) for step in every),
        limit=made.workflow.limits.max_step_executions,
    )


def _least(step: PlannedStep) -> int:
    if step.when is not None and step.decided is not True:
        return 0
    blocks = [block for block in step.blocks if block.label != "catch"]
    if not blocks:
        return 1
    inner = [sum(_least(one) for one in block.steps) for block in blocks]
    if step.verb == "call":
        return 1 + inner[0]
    if step.verb == "ai":  # its blocks are tools, which the model uses as it likes
        return 1
    if step.verb == "branch":
        known = [count for count, block in zip(inner, blocks, strict=True) if block.taken]
        return known[0] if known else 0
    if step.verb == "repeat":
        return inner[0]
    loops = step.verb in ("foreach", "parallel") and [block.label for block in blocks] == ["do"]
    return sum(inner) * (step.turns or 0) if loops else sum(inner)


def _most(step: PlannedStep) -> int | None:
    if step.decided is False:
        return 0
    blocks = [block for block in step.blocks if block.label != "catch"]
    caught = _sum(_most(one) for block in step.blocks if block.label == "catch" for one in block.steps)
    if not blocks:
        return _sum((step.max_attempts, caught))
    if step.verb == "ai":
        return None
    inner = [_sum(_most(one) for one in block.steps) for block in blocks if block.taken is not False]
    if step.verb == "branch":
        return _sum((None if None in inner else max((count or 0 for count in inner), default=0), caught))
    if step.verb == "call":
        each = _sum((1, inner[0]))
        return _sum((None if each is None else each * step.max_attempts, caught))
    loops = step.verb == "repeat" or [block.label for block in blocks] == ["do"]
    whole = _sum(inner)
    if loops and whole != 0:
        whole = None if whole is None or step.turns is None else whole * step.turns
    return _sum((whole, caught))


def _sum(counts: Iterable[int | None]) -> int | None:
    found = list(counts)
    return None if None in found else sum(count or 0 for count in found)


def concurrency(made: Plan, bound: dict[str, Any]) -> PlannedConcurrency | None:
    """The group that a run with these inputs would be in."""
    rule = made.workflow.concurrency
    if rule is None:
        return None
    name = rule.group.text
    with contextlib.suppress(ExpressionError):
        name = render_text(rule.group, {"inputs": bound, "run": {"workflow": made.workflow.name}})
    return PlannedConcurrency(group=name, limit=rule.limit, on_conflict=rule.on_conflict)


def limits(made: Plan) -> dict[str, Any]:
    """The limits of a run that are set, as JSON."""
    plain = msgspec.to_builtins(made.workflow.limits, enc_hook=float)
    return {name: value for name, value in plain.items() if value is not None}


def permits(made: Plan) -> PlannedPermits:
    """What the steps reach for, as far as the file names it, against what it permits."""
    own = made.workflow.permits
    asked = [node.verify for node in made.nodes.values() if isinstance(node.verify, Node)]
    found = reach.needs([*made.nodes.values(), *asked], own)
    named = msgspec.to_builtins(found.permits)
    return PlannedPermits(
        declared=own is not None,
        enough={kind: list(names) for kind, names in named.items() if names},
        unknown=[list(pair) for pair in found.unknown],
        missing=[list(pair) for pair in found.missing],
    )


def _verify(node: Node) -> str | None:
    if node.verify is None:
        return None
    return node.verify.verb if isinstance(node.verify, Node) else node.verify.text


def _seconds(duration: float | None) -> float | None:
    return None if duration is None else float(duration)


def _key(value: Any) -> str:
    if value is None:
        return "null"
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
