"""`parallel`: run named branches, or a block per item of a list, side by side."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ..codec import Json
from ..errors import Pointer
from ..expression import Expression, Value
from ..running import Job, Known, Walk
from ..step import Block, Control, Finding
from . import _items


class Parallel(Control, frozen=True, kw_only=True, rename={"as_": "as"}):
    """Fan out: `branches` by name, or `items` with a block to `do` for each. Results keep the order given."""

    branches: Annotated[
        dict[str, Block] | None, msgspec.Meta(description="A block for each name; all run side by side.")
    ] = None
    items: Annotated[
        Value | None,
        msgspec.Meta(description="The list: an expression, or data.", examples=["${{ steps.files.output }}"]),
    ] = None
    as_: Annotated[str, msgspec.Meta(description="The name of the item inside `do`.")] = "item"
    key: Annotated[
        Expression | None, msgspec.Meta(description="The identity of an item across resumes; default: its index.")
    ] = None
    do: Annotated[Block | None, msgspec.Meta(description="The block to run for each item.")] = None
    max: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        msgspec.Meta(description="How many run at once; default: `limits.max_parallel_branches`."),
    ] = None
    fail_fast: Annotated[
        bool, msgspec.Meta(description="Cancel the others as soon as one fails; else they finish first.")
    ] = False
    on_error: Annotated[
        Literal["fail", "collect"],
        msgspec.Meta(description="`collect` leaves `{error: …}` in the place of a failed item, and the step succeeds."),
    ] = "fail"

    def check(self) -> tuple[Finding, ...]:
        """One of the two forms, whole, with a name that can be read in expressions."""
        if (self.branches is None) == (self.items is None):
            what = "a parallel step has either `branches`, or `items` and `do`"
            return (Finding((), "TRM345", what, "keep one of the two forms"),)
        if self.branches is not None:
            if self.do is not None or self.key is not None:
                field = "do" if self.do is not None else "key"
                return (Finding((field,), "TRM345", f"`{field}` belongs to `items`", f"remove `{field}`"),)
            if not self.branches:
                return (Finding(("branches",), "TRM346", "`branches` is empty", "add a branch"),)
            return _items.empty(self)
        if self.do is None:
            return (Finding((), "TRM105", "missing key `do` in a parallel step", "add `do` with the steps of an item"),)
        return _items.empty(self)

    def needs_loop(self) -> bool:
        """Pure blocks are computed one after another: nothing would be gained side by side."""
        return any(
            not (isinstance(node.step, Control) or node.step.pure())
            for _, _, block in self.blocks()
            for node in block.walk()
        )

    def blocks(self) -> tuple[tuple[Pointer, str, Block], ...]:
        """Every branch, or the block of an item."""
        if self.branches is not None:
            return tuple((("branches", name), name, block) for name, block in self.branches.items())
        return ((("do",), "do", self.do),) if self.do is not None else ()

    def binds(self) -> tuple[str, ...]:
        """The item and `loop`."""
        return (self.as_, "loop") if self.items is not None else ()

    def output(self, result: Any) -> Json:
        """The results: a list in order of the items, or a map by branch."""
        return result["branches"] if self.branches is not None else result["items"]  # type: ignore[no-any-return]

    def shape(self, known: Known) -> dict[str, Any] | None:
        """`{branch: {id: output}}`, or `[{id: output}]`."""
        collect = self.on_error == "collect"
        if self.branches is not None:
            made = {name: _items.outcome(known.block(block), collect) for name, block in self.branches.items()}
            return {"type": "object", "properties": made}
        return {"type": "array", "items": _items.outcome(known.block(self.do), collect) if self.do is not None else {}}

    def record(self, known: Known) -> dict[str, Any] | None:
        """The results, and how many failed."""
        name = "branches" if self.branches is not None else "items"
        return {"type": "object", "properties": {name: self.shape(known), "failed": {"type": "integer"}}}

    async def walk(self, walk: Walk) -> Any:
        """Run all of them."""
        if self.branches is not None:
            jobs = [Job(name, block, {}) for name, block in self.branches.items()]
        else:
            assert self.items is not None  # `check` refuses a parallel step with neither
            assert self.do is not None
            jobs = await _items.jobs(walk, self.items, self.as_, self.key, self.do)
        window = min(self.max or walk.limit, walk.limit)
        collect = self.on_error == "collect"
        results, failed = await walk.fan_out(jobs, window=window, fail_fast=self.fail_fast, collect=collect)
        if self.branches is not None:
            return {"branches": dict(zip(self.branches, results, strict=True)), "failed": failed}
        return {"items": results, "failed": failed}
