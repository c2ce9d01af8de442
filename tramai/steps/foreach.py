"""`foreach`: run a block for each item of a list, one after another."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ..codec import Json
from ..errors import Pointer
from ..expression import Expression, Value
from ..running import Known, Walk
from ..step import Block, Control, Finding
from . import _items


class Foreach(Control, frozen=True, kw_only=True, rename={"as_": "as"}):
    """Loop over a list in order; the first failure ends the loop unless `on_error: collect`."""

    items: Annotated[
        Value, msgspec.Meta(description="The list: an expression, or data.", examples=["${{ steps.files.output }}"])
    ]
    as_: Annotated[str, msgspec.Meta(description="The name of the item inside `do`.")] = "item"
    key: Annotated[
        Expression | None, msgspec.Meta(description="The identity of an item across resumes; default: its index.")
    ] = None
    do: Annotated[Block, msgspec.Meta(description="The block to run for each item.")]
    on_error: Annotated[
        Literal["fail", "collect"],
        msgspec.Meta(description="`collect` leaves `{error: …}` in the place of a failed item and goes on."),
    ] = "fail"

    def check(self) -> tuple[Finding, ...]:
        """A body with steps in it."""
        return _items.empty(self)

    def blocks(self) -> tuple[tuple[Pointer, str, Block], ...]:
        """The block of an item."""
        return ((("do",), "do", self.do),)

    def binds(self) -> tuple[str, ...]:
        """The item and `loop`."""
        return (self.as_, "loop")

    def output(self, result: Any) -> Json:
        """The results in order of the items."""
        return result["items"]  # type: ignore[no-any-return]

    def shape(self, known: Known) -> dict[str, Any] | None:
        """`[{id: output}]`."""
        return {"type": "array", "items": _items.outcome(known.block(self.do), self.on_error == "collect")}

    def record(self, known: Known) -> dict[str, Any] | None:
        """The results, and how many failed."""
        return {"type": "object", "properties": {"items": self.shape(known), "failed": {"type": "integer"}}}

    async def walk(self, walk: Walk) -> Any:
        """Run the items one by one."""
        jobs = await _items.jobs(walk, self.items, self.as_, self.key, self.do)
        collect = self.on_error == "collect"
        results, failed = await walk.fan_out(jobs, window=1, fail_fast=not collect, collect=collect, in_order=True)
        return {"items": results, "failed": failed}
