"""`branch`: run one of several blocks."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ..codec import Json
from ..errors import Pointer
from ..expression import Condition, Expression
from ..running import Known, Walk
from ..step import Block, Control, Finding, StepError


class Branch(Control, frozen=True, kw_only=True, rename={"if_": "if", "else_": "else"}):
    """Choose a block by a value (`select` and `cases`) or by a condition (`if`, `then`, `else`)."""

    select: Annotated[Expression | None, msgspec.Meta(description="The value that chooses the case.")] = None
    cases: Annotated[
        dict[str, Block] | None,
        msgspec.Meta(description="A block for each value. A number or boolean meets the key with its JSON text."),
    ] = None
    default: Annotated[Block | None, msgspec.Meta(description="The block for any other value.")] = None
    if_: Annotated[Condition | None, msgspec.Meta(description="The condition.")] = None
    then: Annotated[Block | None, msgspec.Meta(description="The block to run while the condition holds.")] = None
    else_: Annotated[Block | None, msgspec.Meta(description="The block to run otherwise.")] = None

    def check(self) -> tuple[Finding, ...]:
        """One of the two forms, whole."""
        by_value = self.select is not None or self.cases is not None or self.default is not None
        by_condition = self.if_ is not None or self.then is not None or self.else_ is not None
        if by_value == by_condition:
            what = "a branch has either `select` and `cases`, or `if` and `then`"
            return (Finding((), "TRM344", what, "keep one of the two forms"),)
        wanted = (
            (("select", self.select), ("cases", self.cases)) if by_value else (("if", self.if_), ("then", self.then))
        )
        missing = [name for name, value in wanted if value is None]
        return tuple(Finding((), "TRM105", f"missing key `{name}` in a branch", f"add `{name}`") for name in missing)

    def blocks(self) -> tuple[tuple[Pointer, str, Block], ...]:
        """Every case, in the order of the file."""
        found: list[tuple[Pointer, str, Block]] = [
            (("cases", key), key, block) for key, block in (self.cases or {}).items()
        ]
        for name, block in (("default", self.default), ("then", self.then), ("else", self.else_)):
            if block is not None:
                found.append(((name,), name, block))
        return tuple(found)

    def visible(self) -> bool:
        """Steps of the block taken may be read afterwards."""
        return True

    def output(self, result: Any) -> Json:
        """The outputs of the block taken."""
        return result["steps"]  # type: ignore[no-any-return]

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The steps of whichever block is taken."""
        found: dict[str, Any] = {}
        for _, _, block in self.blocks():
            found |= known.block(block)["properties"]
        return {"type": "object", "properties": found}

    def record(self, known: Known) -> dict[str, Any] | None:
        """The case, and the outputs of its block."""
        return {"type": "object", "properties": {"case": {"type": "string"}, "steps": self.shape(known)}}

    async def walk(self, walk: Walk) -> Any:
        """Choose once, then run the block."""
        key, block = self._block(await walk.once(lambda: self._choose(walk)))
        steps = await walk.block(block, key=key, names={}, visible=True) if block else {}
        return {"case": key, "steps": steps}

    def _choose(self, walk: Walk) -> Json:
        """The chosen case: `[key]`, or `[]` for the default."""
        if self.if_ is not None:
            return ["then" if walk.test(self.if_) else "else"]
        assert self.select is not None  # `check` refuses a branch with neither
        value = walk.value(self.select)
        if isinstance(value, (list, dict, float)):
            raise StepError(
                "expression", f"a branch selects by text, a whole number or a boolean, not by {_kind(value)}"
            )
        text = _text(value)
        if self.cases is not None and text in self.cases:
            return [text]
        if self.default is not None:
            return []
        known = ", ".join(self.cases or {}) or "none"
        raise StepError("expression", f"no case '{text}' (cases: {known})", hint="add the case, or a `default`")

    def _block(self, choice: Any) -> tuple[str, Block | None]:
        if not choice:
            return "default", self.default
        if self.if_ is not None:
            return choice[0], self.then if choice[0] == "then" else self.else_
        return choice[0], (self.cases or {})[choice[0]]


def _text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _kind(value: object) -> str:
    return {list: "a list", dict: "a map", float: "a fraction"}[type(value)]
