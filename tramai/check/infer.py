"""The shape of an expression's value, and what in it can never work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from . import advice, algebra, filters
from .algebra import ANY, BOOLEAN, NUMBER, TEXT, WHOLE, Schema

Tree = tuple[Any, ...]
Naming = Callable[[Tree], Schema]
"""The shape of a name at the root of a path, or of one step (`steps.fetch`)."""


class Fault(msgspec.Struct, frozen=True):
    """Something that fails, or decides nothing, whatever the values are."""

    code: str
    message: str
    start: int
    end: int
    hint: str | None = None


_NUMBERS = frozenset(("number",))
_TEXTS = frozenset(("string",))
_SIGNS = {"sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "add": "+"}
_ORDER = {"lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}
_FEW = 12


class Inference:
    """Goes over one tree; `faults` collects what is wrong, `near` finds the name that was meant."""

    def __init__(self, name: Naming, near: Callable[[str, Any], str | None] | None = None) -> None:
        self._name_of = name
        self._near = near
        self.faults: list[Fault] = []

    def of(self, tree: Tree) -> Schema:
        """The shape of a tree's value, `{}` when nothing is known of it."""
        method = getattr(self, f"_{tree[0]}", None)
        if method is not None:
            found: Schema = method(tree)
            return found
        return self._calculated(tree) if tree[0] in _SIGNS else ANY

    def decides(self, tree: Tree) -> None:
        """Note a tree that has to be a boolean and never is one."""
        found = algebra.kinds(self.of(tree))
        if "boolean" not in found:
            what = f"this must be true or false; it is always {algebra.spell(found)}"
            self._fault("TRM212", what, tree, advice.compared(found))

    def _fault(self, code: str, message: str, tree: Tree, hint: str | None = None) -> Schema:
        self.faults.append(Fault(code, message, tree[1], tree[2], hint))
        return ANY

    def _const(self, tree: Tree) -> Schema:
        return {"const": tree[3]}

    def _name(self, tree: Tree) -> Schema:
        return self._name_of(tree)

    def _get(self, tree: Tree) -> Schema:
        if tree[3][0] == "name" and tree[3][3] == "steps":
            return self._name_of(tree)
        inner, key = self.of(tree[3]), tree[4]
        if is_path(tree[3]):
            return algebra.member(inner, key)  # what its schema does not declare is told for the whole path
        known = algebra.keys(inner)
        if isinstance(key, str) and known is not None and key not in known and algebra.kinds(inner) == {"object"}:
            near = self._near(key, known) if self._near else None
            return self._fault("TRM209", f"there is no `{key}` here", tree, near or f"declared: {', '.join(known)}")
        return self._below(tree, inner, key)

    def _below(self, tree: Tree, inner: Schema, key: str | int) -> Schema:
        found = algebra.kinds(inner)
        wanted = {"object"} if isinstance(key, str) else {"array", "string"}
        if found & wanted or "null" in found:
            return algebra.member(inner, key)
        return self._fault("TRM209", f"{algebra.spell(found)} has no `{key}`", tree)

    def _index(self, tree: Tree) -> Schema:
        inner, key = self.of(tree[3]), algebra.kinds(self.of(tree[4]))
        found = algebra.kinds(inner)
        fits = (found & {"object"} and key & _TEXTS) or (found & {"array", "string"} and key & _NUMBERS)
        if not fits and "null" not in found:
            what = f"{algebra.spell(found)} has no item under {algebra.spell(key)}"
            return self._fault("TRM240", what, tree, advice.indexed(found))
        return algebra.item(inner) if found == {"array"} else ANY

    def _slice(self, tree: Tree) -> Schema:
        inner = self.of(tree[3])
        found = algebra.kinds(inner)
        if not found & {"array", "string"}:
            return self._fault("TRM240", f"only a list or text can be sliced, not {algebra.spell(found)}", tree)
        for bound in tree[4:]:
            if bound is not None:
                self.of(bound)
        return inner if found in ({"array"}, {"string"}) and "type" in inner else ANY

    def _list(self, tree: Tree) -> Schema:
        items = [self.of(item) for item in tree[3]]
        return {"type": "array", "items": algebra.union(*map(algebra.wide, items))} if items else algebra.LIST

    def _map(self, tree: Tree) -> Schema:
        made: dict[str, Schema] = {}
        plain = True
        for key, value in tree[3]:
            plain = plain and key[0] == "const"
            made[str(key[3])] = self.of(value)
            if key[0] != "const" and "string" not in algebra.kinds(self.of(key)):
                self._fault("TRM240", "the keys of a mapping are text", key, "write `… | string`")
        return {"type": "object", "properties": made} if plain else algebra.MAP

    def _neg(self, tree: Tree) -> Schema:
        found = algebra.kinds(self.of(tree[3]))
        if "number" not in found:
            return self._fault("TRM240", f"only a number has a sign, not {algebra.spell(found)}", tree)
        return NUMBER

    _pos = _neg

    def _not(self, tree: Tree) -> Schema:
        self.decides(tree[3])
        return BOOLEAN

    def _and(self, tree: Tree) -> Schema:
        self.decides(tree[3])
        self.decides(tree[4])
        return BOOLEAN

    _or = _and

    def _if(self, tree: Tree) -> Schema:
        self.decides(tree[3])
        then = self.of(tree[4])
        return algebra.union(then, self.of(tree[5])) if tree[5] is not None else then

    def _join(self, tree: Tree) -> Schema:
        for part in tree[3]:
            if algebra.kinds(self.of(part)) == {"null"}:
                self._fault("TRM240", "null is no text", part, "give another value with default(…)")
        return TEXT

    def _calculated(self, tree: Tree) -> Schema:
        left, right = self.of(tree[3]), self.of(tree[4])
        one, other = algebra.kinds(left), algebra.kinds(right)
        if tree[0] == "add":
            both = one & other & {"number", "string", "array"}
            if not both:
                return self._fault("TRM240", f"+ cannot add {_pair(one, other)}", tree, advice.joined(one, other))
            return {"type": sorted(both)} if len(both) == 1 and len(one) == len(other) == 1 else ANY
        if "number" not in one or "number" not in other:
            what = f"{_SIGNS[tree[0]]} needs two numbers, not {_pair(one, other)}"
            return self._fault("TRM240", what, tree, advice.calculable(one, other))
        whole = tree[0] in ("sub", "mul") and left.get("type") == right.get("type") == "integer"
        return WHOLE if whole else NUMBER

    def _compare(self, tree: Tree) -> Schema:
        left = tree[3]
        for sign, right in tree[4]:
            self._compared(sign, left, right)
            left = right
        return BOOLEAN

    def _compared(self, sign: str, left: Tree, right: Tree) -> None:
        place = ("compare", left[1], right[2])
        first, second = self.of(left), self.of(right)
        one, other = algebra.kinds(first), algebra.kinds(second)
        if sign in _ORDER:
            if not one & other & {"number", "string"}:
                self._fault("TRM240", f"{_pair(one, other)} have no order", place, advice.calculable(one, other))
        elif sign in ("in", "notin"):
            self._inside(place, first, second)
        else:
            self._equal(sign, place, first, second)

    def _inside(self, place: Tree, item: Schema, container: Schema) -> None:
        found = algebra.kinds(container)
        if not found & {"array", "object", "string"}:
            self._fault(
                "TRM240", f"`in` needs a list, text or a mapping on its right, not {algebra.spell(found)}", place
            )
        elif found == _TEXTS and "string" not in algebra.kinds(item):
            what = f"text can only hold text, not {algebra.spell(algebra.kinds(item))}"
            self._fault("TRM240", what, place, "write `value | string`")
        elif found == {"array"}:
            self._among(place, item, algebra.item(container))

    def _among(self, place: Tree, item: Schema, other: Schema) -> None:
        if not algebra.kinds(item) & algebra.kinds(other):
            what = f"a list of {algebra.spell(algebra.kinds(other))} never holds {algebra.spell(algebra.kinds(item))}"
            self._fault("TRM242", what, place)

    def _equal(self, sign: str, place: Tree, left: Schema, right: Schema) -> None:
        one, other = algebra.kinds(left), algebra.kinds(right)
        always = "true" if sign == "ne" else "false"
        if not one & other:
            what = f"{_pair(one, other)} are never equal: this is always {always}"
            self._fault("TRM242", what, place, advice.as_written(left, right))
            return
        some, others = algebra.values(left), algebra.values(right)
        if some is None or others is None or any(algebra.same(value, given) for value in some for given in others):
            return
        known, given = (some, others) if len(some) >= len(others) else (others, some)
        if len(given) > 1:
            self._fault("TRM242", f"the two have no value in common: this is always {always}", place)
        elif len(known) == 1:
            self._fault("TRM242", f"these are never equal: this is always {always}", place)
        else:
            what = f"it is never {algebra.shown(given[0])}: this is always {always}"
            self._fault("TRM242", what, place, self._one_of(known, given[0]))

    def _one_of(self, known: list[Any], given: Any) -> str:
        near = self._near(given, [name for name in known if isinstance(name, str)]) if self._near and given else None
        if near is not None and isinstance(given, str):
            return near
        listed = ", ".join(map(algebra.shown, known[:_FEW]))
        return f"it is one of {listed}" + (", …" if len(known) > _FEW else "")

    def _looked_at(self, tree: Tree, lenient: bool) -> Schema:
        """The shape of what a filter or test is put to; `lenient`: what is missing there is no fault."""
        before = len(self.faults)
        value = self.of(tree[3])
        if lenient:
            self.faults[before:] = [fault for fault in self.faults[before:] if fault.code != "TRM209"]
        return value

    def _filter(self, tree: Tree) -> Schema:
        name, value = tree[4], self._looked_at(tree, tree[4] in ("default", "d"))
        arguments = [self.of(argument) for argument in tree[5]]
        for _, argument in tree[6]:
            self.of(argument)
        if name in ("default", "d"):
            other = arguments[0] if arguments else dict(tree[6]).get("default_value")
            return algebra.union(value, other if isinstance(other, dict) else TEXT)
        wanted = filters.TAKES.get(name)
        found = algebra.kinds(value)
        lenient = name in ("int", "float") and (tree[5] or tree[6])
        if wanted is not None and not found & wanted and not lenient:
            what = f"`{name}` needs {algebra.spell(wanted)}, not {algebra.spell(found)}"
            keys = algebra.keys(value) if found == {"object"} else None
            hint = advice.mended(found, wanted, name) or (
                f"take one of its keys: {', '.join(keys[:8])}" if keys else None
            )
            return self._fault("TRM241", what, tree, hint)
        return self._attribute(tree, value) or filters.gives(name, value)

    def _attribute(self, tree: Tree, value: Schema) -> Schema | None:
        """What an `attribute` of the items is, told if they do not have it."""
        name, named = tree[4], dict(tree[6])
        given = named.get("attribute")
        if given is None and name in ("selectattr", "rejectattr", "groupby") and tree[5]:
            given = tree[5][0]
        if given is None or given[0] != "const" or not isinstance(given[3], (str, int)) or isinstance(given[3], bool):
            return None
        items = algebra.item(value) if algebra.kinds(value) == {"array"} else ANY
        found, missing = filters.attribute(items, given[3])
        if missing is not None and "default" not in named:
            known = algebra.keys(items) or ()
            near = self._near(missing, known) if self._near else None
            self._fault("TRM209", f"the items have no `{missing}`", given, near or f"they have {', '.join(known)}")
        elif name in ("selectattr", "rejectattr") and len(tree[5]) == 3:
            self._judged(tree, found)
        return {"type": "array", "items": found} if name == "map" else None

    def _judged(self, tree: Tree, found: Schema) -> None:
        """`selectattr("risk", "equalto", "hihg")`: the comparison that the test makes."""
        signs = {"==": "eq", "eq": "eq", "equalto": "eq", "!=": "ne", "ne": "ne"}
        sign = signs.get(str(tree[5][1][3])) if tree[5][1][0] == "const" else None
        if sign is not None:
            place = ("compare", tree[5][2][1], tree[5][2][2])
            self._equal(sign, place, found, self.of(tree[5][2]))

    def _test(self, tree: Tree) -> Schema:
        found = algebra.kinds(self._looked_at(tree, tree[4] in ("defined", "undefined")))
        for argument in (*tree[5], *(value for _, value in tree[6])):
            self.of(argument)
        wanted = filters.TESTED.get(tree[4])
        if wanted is not None and not found & wanted:
            what = f"the test `{tree[4]}` needs {algebra.spell(wanted)}, not {algebra.spell(found)}"
            self._fault("TRM241", what, tree, advice.mended(found, wanted, tree[4]))
        return BOOLEAN


def is_path(tree: Tree) -> bool:
    """Whether a tree is a name with keys known before the run, and nothing else."""
    while tree[0] == "get":
        tree = tree[3]
    return bool(tree[0] == "name")


def _pair(one: frozenset[str], other: frozenset[str]) -> str:
    return f"{algebra.spell(one)} and {algebra.spell(other)}"
