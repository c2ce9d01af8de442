"""From the raw errors of jsonschema to problems: one for each mistake, in its place, with advice.

A misspelt key explains the key that is missing for it; a wrong form of a union is not mentioned; a step without a
known verb is not blamed for what a verb would need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import reduce
from typing import Any

from . import _habits, _wording
from ._findings import Finding, findings
from ._shape import Schema, Shape, compile_shape, json_pointer, replace
from .document import Document
from .errors import Pointer, Position, Problem, Related

_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_MOST_SUGGESTIONS = 200
"""Misspelt keys for which a right one is looked for: each search takes about a tenth of a millisecond."""


def below_any(pointer: Pointer, others: Set[Pointer]) -> bool:
    """Whether a pointer is one of the others or lies below one."""
    return any(pointer[:depth] in others for depth in range(len(pointer) + 1))


class Ranking:
    """The problems of one document."""

    def __init__(self, data: Any, schema: Schema, document: Document) -> None:
        self._data = data
        self._schema = schema
        self._document = document
        self._quiet: set[Pointer] = set()
        self._said: set[tuple[str, Pointer, str]] = set()
        self._suggested = 0
        self._explained: set[tuple[Pointer, str]] = set()
        self._problems: list[Problem] = []

    def problems(self) -> list[Problem]:
        """Everything wrong, in the order of the document, one problem for one mistake."""
        found = findings(self._data, self._schema)
        extra = {finding.pointer: list(self._unknown(finding)) for finding in _having(found, "additionalProperties")}
        for finding in [*_having(found, "verb"), *_having(found, "oneOf")]:
            self._verbs(finding, extra.get(finding.pointer, []))
        for finding in _having(found, "additionalProperties"):
            for key in extra[finding.pointer]:
                self._unknown_key(finding, key)
        for finding in found:
            if finding.keyword == "required":
                self._missing(finding)
            elif finding.keyword not in ("additionalProperties", "verb", "oneOf"):
                self._wrong(finding)
        return self._problems

    def _verbs(self, finding: Finding, unknown: list[str]) -> None:
        """None of the verbs, or more than one."""
        if not isinstance(finding.value, dict):
            return
        verbs = [part["required"][0] for part in finding.schema.get("oneOf", ()) if "required" in part]
        given = [key for key in finding.value if key in verbs]
        at, where = finding.pointer, _wording.place(finding.pointer, self._data)
        if len(given) > 1:
            self._quiet |= {(*at, verb) for verb in given}
            names = " and ".join(f"`{verb}`" for verb in given)
            first = self._document.position((*at, given[0]), key=True)
            self._add(
                "TRM108",
                f"{where} has {len(given)} verbs: {names}",
                (*at, given[1]),
                hint="a step does one thing: make two steps of it",
                key=True,
                related=(Related(first, f"`{given[0]}` is here"),),
            )
        elif len(finding.value) == 1 and "id" not in finding.value and self._is_name(finding, verbs):
            (key,) = finding.value
            self._quiet.add((*at, key))
            self._explained.add((at, "id"))
            hint = f"write `- id: {key}`, and the verb beside it"
            self._add("TRM104", f"unknown key `{key}` in {where}", (*at, key), hint=hint, key=True)
        elif _habits.verb(unknown) is None and any(
            _wording.near(key, verbs) or _habits.also(key, finding.schema) in verbs for key in unknown[:50]
        ):
            return
        elif (meant := self._meant(finding, unknown, verbs)) is not None:
            key, hint = meant
            self._add("TRM109", f"unknown verb `{key}` in {where}", (*at, key), hint=hint, key=True)
        else:
            hint = self._cut_in_two(finding, verbs) or f"add one of {_wording.listed(verbs, 30)}"
            self._add("TRM109", f"{where} has no verb", at, hint=hint, position=self._document.first_key(at))

    def _cut_in_two(self, finding: Finding, verbs: list[str]) -> str | None:
        """What to do about a dash too many, that makes a step of its own of the verb: then nothing is said of that."""
        *above, index = finding.pointer
        steps = reduce(lambda inside, part: inside[part], above, self._data)
        if not isinstance(index, int) or "id" not in finding.value or index + 1 >= len(steps):
            return None
        after, rest = (*above, index + 1), steps[index + 1]
        if not isinstance(rest, dict) or "id" in rest or not rest.keys() & {*verbs}:
            return None
        self._explained.add((after, "id"))
        key = next(iter(rest))
        return f"remove the `-` before `{key}` in line {self._document.position((*after, key), key=True).line}"

    def _is_name(self, finding: Finding, verbs: list[str]) -> bool:
        """Whether the only key of a step is its name, with the verb below it."""
        ((key, below),) = finding.value.items()
        return isinstance(below, dict) and bool(below.keys() & {*verbs}) and key not in verbs

    def _meant(self, finding: Finding, unknown: list[str], verbs: list[str]) -> tuple[str, str] | None:
        """The unknown key that was meant as the verb, and what to write; nothing else is said of what goes with it."""
        at = finding.pointer
        strange = [key for key in unknown[:50] if not self._belongs(finding, key) and not self._near(finding, key)]
        meant = _habits.verb(unknown)
        if meant is None and strange:
            owners = [verb for verb in verbs if strange[0] in self._shape((*at, verb)).names()]
            hint = f"write `{owners[0]}: {{{strange[0]}: …}}`" if len(owners) == 1 else None
            meant = strange[0], hint or f"verbs: {_wording.listed(verbs, 30)}"
        if meant is not None:
            self._quiet |= {(*at, key) for key in (*strange, meant[0])}
            if "name" in unknown and "id" not in finding.value:
                self._explained.add((at, "id"))
        return meant

    def _unknown(self, finding: Finding) -> Iterator[str]:
        """The keys of a mapping that its schema does not know."""
        shape = compile_shape(finding.schema, self._schema)
        known = set(shape.names())
        yield from (key for key in finding.value if key not in known and not (shape.free and key.startswith("x-")))

    def _near(self, finding: Finding, key: str) -> str | None:
        self._suggested += 1
        if self._suggested > _MOST_SUGGESTIONS:
            return None
        names = [name for name in finding.schema.get("properties", {}) if name not in finding.value]
        return _habits.also(key, finding.schema) or _wording.near(key, names)

    def _habit(self, finding: Finding, key: str) -> str | None:
        """What another tool calls so, and what to write instead."""
        title = _habits.title_of(finding.schema)
        if self._document.format == "toml" and title == "step" and key in self._schema.get("properties", {}):
            return f"what stands below a [[steps]] belongs to that step: write `{key}` above the first of them"
        if title == "local" and not {"value", "call"} & finding.value.keys() and not self._near(finding, key):
            return f"data stands under `value`: local: {{value: {{{key}: …}}}}"
        if title == "shape" and isinstance(finding.value[key], dict) and not self._near(finding, key):
            return f"fields stand under `properties`: {{properties: {{{key}: …}}}}"
        if title == "shape" and finding.value[key] in _TYPES and not self._near(finding, key):
            return f"fields stand under `properties`: {{properties: {{{key}: {{type: {finding.value[key]}}}}}}}"
        if self._is_setting(finding, key):
            self._explained.add((finding.pointer, "with"))
            return "the settings of the step type stand under `with`"
        if title == "defaults" or finding.pointer == ("defaults",):
            verb = f"say for which verb: defaults: {{shell: {{{key}: …}}}}"
            return None if self._near(finding, key) else verb
        if (explained := _habits.explains(title, key)) is not None:
            self._explained.add((finding.pointer, explained))
            if explained in finding.value or title != "step":
                return _habits.hint(title, key, finding.value[key])
            return f"did you mean `{explained}`?"
        return _habits.hint(title, key, finding.value[key])

    def _unknown_key(self, finding: Finding, key: str) -> None:
        at = (*finding.pointer, key)
        if self._is_quiet(at):
            return
        self._quiet.add(at)
        if self._is_one_of_many(finding, key):
            return
        hint = self._belongs(finding, key) or self._habit(finding, key)
        fix: tuple[dict[str, object], ...] | None = None
        if hint is None and (better := self._near(finding, key)):
            self._explained.add((finding.pointer, better))
            names = finding.schema.get("properties", {})
            if better not in finding.value and (
                _habits.listed(key, finding.schema) or _wording.is_clear(key, names, better)
            ):
                fix = ({"op": "move", "from": json_pointer(at), "path": json_pointer((*finding.pointer, better))},)
            hint = f"did you mean `{better}`?"
        if hint is None and len(finding.value) < 50 and (better := _wording.near(key, finding.value.keys() - {key})):
            hint = f"`{better}` is here already: remove one of the two"
        if hint is None:
            names = finding.schema.get("properties", {})
            hint = f"known keys: {_wording.listed(names, 20)}" if names else None
        self._add(
            "TRM104",
            f"unknown key `{key}` {_wording.within(finding.pointer, self._data)}",
            at,
            hint=hint,
            key=True,
            fix=fix,
            note=_wording.not_a_key_of(finding.pointer, self._schema.get("title", "")),
        )

    def _is_one_of_many(self, finding: Finding, key: str) -> bool:
        """Whether another key of the mapping has told already that all of them stand in a wrong place."""
        title, at = _habits.title_of(finding.schema), finding.pointer
        hint = _habits.hint(title, key)
        if title == "local" and not {"value", "call"} & finding.value.keys():
            hint = "write the data under `value`"
        if title == "shape" and (isinstance(finding.value[key], dict) or finding.value[key] in _TYPES):
            hint = "write the fields under `properties`"
        if self._is_setting(finding, key):
            hint = "write the settings under `with`"
        if hint is None or title in ("step", "tramai workflow"):
            return False
        known = (at, hint)
        if known in self._explained:
            return True
        self._explained.add(known)
        return False

    def _is_setting(self, finding: Finding, key: str) -> bool:
        """Whether it is a setting of another package's step, which stands one level too high."""
        title, at = _habits.title_of(finding.schema), finding.pointer
        return title == "plugin" and at[:1] != ("defaults",) and not self._near(finding, key)

    def _belongs(self, finding: Finding, key: str) -> str | None:
        """Whether the key is at home one level down, in a sibling, or one level up."""
        shape = compile_shape(finding.schema, self._schema)
        for sibling in shape.names():
            if sibling in finding.value and key in shape.at(sibling).names():
                if finding.value[sibling] is None:
                    self._quiet.add((*finding.pointer, sibling))
                    return f"`{key}` belongs to `{sibling}`: indent it further"
                return f"`{key}` belongs inside `{sibling}`"
        if finding.pointer and key in (above := self._shape(finding.pointer[:-1])).names() and len(above.names()) > 1:
            return f"`{key}` belongs one level up, beside `{finding.pointer[-1]}`"
        return None

    def _shape(self, pointer: Pointer) -> Shape:
        shape = compile_shape(self._schema, self._schema)
        for part in pointer:
            shape = shape.item() if isinstance(part, int) else shape.at(part)
        return shape

    def _missing(self, finding: Finding) -> None:
        at = finding.pointer
        for key in finding.wanted:
            if key in finding.value or (at, key) in self._explained or self._is_quiet((*at, key)):
                continue
            self._explained.add((at, key))
            message = f"missing key `{key}` {_wording.within(at, self._data)}"
            position = self._document.first_key(at)
            self._add("TRM105", message, at, hint=_wording.example(key, finding.schema), position=position)

    def _wrong(self, finding: Finding) -> None:
        """A wrong type or a wrong value."""
        at, value = finding.pointer, finding.value
        if finding.keyword == "propertyNames" or self._is_key(finding):
            message = f"the key `{value}` in {_wording.place(at, self._data)} does not have the right form"
            self._add("TRM107", message, (*at, str(value)), hint=finding.schema.get("description"), key=True)
            return
        where = _wording.place(at, self._data)
        if finding.keyword == "type" or value is None:
            self._wrong_type(finding, where)
            return
        message = f"{where} {_wording.wrong_value(finding.keyword, finding.wanted, value)}"
        if finding.schema.get("title") == "duration" and isinstance(value, str):
            self._add(
                "TRM107", f"{where} is no duration: {_wording.shown(value)}", at, hint=_wording.duration_hint(value)
            )
            return
        hint = _habits.form(at, value) or _wording.hint(finding.schema)
        fix = None
        best = (
            _habits.value(finding.wanted, value) or _wording.best_value(finding.wanted, value)
            if finding.keyword == "enum"
            else None
        )
        if best:
            hint = f"did you mean `{best}`?"
            fix = (replace(at, best),) if _wording.is_clear(value, finding.wanted, best) else None
        self._add("TRM107", message, at, hint=hint, fix=fix)

    def _wrong_type(self, finding: Finding, where: str) -> None:
        at, value = finding.pointer, finding.value
        wanted = finding.wanted if finding.keyword == "type" else []
        hint, better = _wording.advice(wanted, value, finding.schema)
        duration = finding.schema.get("title") == "duration"
        if at == ("steps",) and isinstance(value, dict) and self._document.format == "toml":
            hint = "write [[steps]]"
        elif (habit := _habits.wrong_type(at, value)) is not None:
            hint, better = habit, _habits.mended(at, value)
        elif not duration and not (better and isinstance(better[0], bool)):
            hint = _wording.forms(self._shape(at), at, value) or hint
        better = _wording.fitting(better, value, finding.schema)
        fix = (replace(at, better[0]),) if better else None
        message = f"{where} {_wording.wrong_type(wanted, value, duration=duration)}"
        self._add("TRM106", message, at, hint=hint, fix=fix)

    def _is_key(self, finding: Finding) -> bool:
        """Whether the finding is about a key: jsonschema gives such errors the place of the mapping."""
        if not isinstance(finding.value, str):
            return False
        node: Any = self._data
        for part in finding.pointer:
            node = node[part]
        return isinstance(node, dict) and finding.value in node

    def _is_quiet(self, pointer: Pointer) -> bool:
        return below_any(pointer, self._quiet)

    def _add(
        self,
        code: str,
        message: str,
        pointer: Pointer,
        *,
        hint: str | None = None,
        key: bool = False,
        position: Position | None = None,
        related: tuple[Related, ...] = (),
        fix: tuple[dict[str, object], ...] | None = None,
        note: str = "",
    ) -> None:
        if code in ("TRM105", "TRM106", "TRM107") and self._is_quiet(pointer):
            return
        at = position or self._document.position(pointer, key=key)
        if (code, pointer, message) in self._said or (code == "TRM106" and (code, pointer, "") in self._said):
            return
        self._said.add((code, pointer, ""))
        self._said.add((code, pointer, message))
        self._problems.append(
            Problem(
                code=code, message=message, hint=hint, position=at, pointer=pointer, related=related, fix=fix, note=note
            )
        )


def _having(found: Iterable[Finding], keyword: str) -> list[Finding]:
    return [finding for finding in found if finding.keyword == keyword]
