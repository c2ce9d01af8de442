"""What no schema can say of a gate: which keys go together, and numbers that can be met."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..expression import Template
from ..step import Finding

if TYPE_CHECKING:
    from .gate import Gate

CLOSED = Template("the gate is closed")
"""The reason of a condition that gives none."""
OF_PEOPLE = ("show", "form", "approvers", "min", "timeout", "on_timeout", "on_reject")


def findings(gate: Gate) -> tuple[Finding, ...]:
    """Everything that is wrong with a gate's settings."""
    if (gate.check_ is None) == (gate.ask is None):
        what = "a gate has either `check`, a condition, or `ask`, a question to people"
        return (Finding((), "TRM370", what, "keep one of the two" if gate.ask is not None else "add one of the two"),)
    if gate.ask is None:
        return tuple(_of_people(gate))
    return tuple(_asking(gate))


def _of_people(gate: Gate) -> Iterator[Finding]:
    for name in OF_PEOPLE:
        if getattr(gate, name) not in (None, ()):
            yield Finding((name,), "TRM371", f"`{name}` belongs to `ask`", f"remove `{name}`: a condition asks nobody")


def _asking(gate: Gate) -> Iterator[Finding]:
    assert gate.ask is not None
    if not gate.ask.text.strip():
        yield Finding(("ask",), "TRM374", "`ask` is empty", "write the question that people are to decide")
    if gate.reason != CLOSED:
        hint = "remove `reason`: whoever rejects says why in a comment"
        yield Finding(("reason",), "TRM371", "`reason` belongs to `check`", hint)
    yield from _approvers(gate)
    if gate.on_timeout is not None and gate.timeout is None:
        hint = "add `timeout`, or remove `on_timeout`"
        yield Finding(("on_timeout",), "TRM371", "`on_timeout` belongs to `timeout`", hint)
    if gate.timeout is not None and gate.timeout <= 0:
        yield Finding(("timeout",), "TRM350", "a timeout of 0 leaves no time", "take it out for no limit")
    yield from _form(gate)


def _approvers(gate: Gate) -> Iterator[Finding]:
    names = [name.text for name in gate.approvers]
    for index, name in enumerate(names):
        if not name.strip():
            yield Finding(("approvers", index), "TRM374", "an approver has no name", "write who may decide")
        elif name in names[:index]:
            hint = "each name counts once"
            yield Finding(("approvers", index), "TRM372", f"approver `{name}` is named twice", hint)
    least = gate.min or 1
    if names and len(set(names)) < least:
        what = f"`min` is {least}, and there are {len(set(names))} approvers: it can never be approved"
        yield Finding(("min",), "TRM372", what, "name more approvers, or lower `min`")


def _form(gate: Gate) -> Iterator[Finding]:
    form = gate.form
    if form is None:
        return
    if form.type not in (None, "object"):
        what = f"a form is an object of fields, not of type {form.type}"
        yield Finding(("form", "type"), "TRM373", what, "write {properties: {note: {type: string}}}")
    elif not form.properties:
        what = "a form has `properties`: the fields that are asked for"
        yield Finding(("form",), "TRM373", what, "write {properties: {note: {type: string}}}")
    elif form.enum is not None:
        yield Finding(("form", "enum"), "TRM373", "a form cannot have `enum`", "give it to one of its properties")
