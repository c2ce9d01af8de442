"""`local`: compute a value, with an expression or a Python function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import msgspec

from ..codec import Json, decode, encode
from ..expression import Value
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Replay, Step, StepError

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class Local(Step, frozen=True, kw_only=True, rename={"with_": "with"}):
    """Compute a value: an expression, data with expressions in it, or a call of a Python function."""

    scalar: ClassVar[str | None] = "value"
    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = True
    alone: ClassVar[bool] = False

    value: Annotated[Value | None, msgspec.Meta(description="The value: any data, with `${{ }}` anywhere in it.")] = (
        None
    )
    call: Annotated[
        str | None,
        msgspec.Meta(description="A Python function as `module:function`.", examples=["checks.style:score"]),
    ] = None
    with_: Annotated[dict[str, Value] | None, msgspec.Meta(description="Keyword arguments of the function.")] = None

    def pure(self) -> bool:
        """An expression has no effect; a function may have."""
        return self.call is None

    def check(self) -> tuple[Finding, ...]:
        """Exactly one of `value` and `call`, and a function that is spelled as one."""
        if (self.value is None) == (self.call is None):
            return (Finding((), "TRM340", "a local step needs either `value` or `call`", "keep one of the two"),)
        if self.call is None:
            if self.with_ is not None:
                return (Finding(("with",), "TRM340", "`with` belongs to `call`", "remove `with`, or add `call`"),)
            return ()
        if not _FUNCTION.fullmatch(self.call):
            return (Finding(("call",), "TRM341", f"`{self.call}` is no function", "write it as module:function"),)
        return ()

    def shape(self, known: Known) -> dict[str, Any] | None:
        """That of the expression; what a function gives is not known."""
        return known.value(self.value) if self.value is not None else None

    def record(self, known: Known) -> dict[str, Any] | None:
        """The same."""
        return self.shape(known)

    async def run(self, ctx: Context) -> Outcome:
        """Evaluate, or import and call."""
        if self.call is None:
            return Done(ctx.value(self.value)) if self.value is not None else Done(None)
        # A copy: what a function does to its arguments is nothing that other steps see.
        arguments = decode(encode({name: ctx.value(value) for name, value in (self.with_ or {}).items()}))
        name, folder = self.call, ctx.folder
        return Done(await ctx.blocking(lambda: _call(name, folder, arguments), grace=0.0))


def _call(name: str, folder: str | None, arguments: dict[str, Json]) -> Any:
    function = _find(name, folder)
    try:
        result = function(**arguments)
        if hasattr(result, "__await__"):
            import asyncio

            result = asyncio.run(_wait(result))
    except StepError:
        raise
    except Exception as error:  # the edge to a user's code: whatever it raises is the step's failure
        text = f"{name} raised {type(error).__name__}: {error}"
        raise StepError(f"plugin.{type(error).__name__}", text) from error
    return result


async def _wait(result: Any) -> Any:
    return await result


def _find(name: str, folder: str | None) -> Callable[..., Any]:
    """Import the function; the workflow's folder is searched first, as for a script that lies there."""
    import importlib
    import sys

    module_name, _, attribute = name.partition(":")
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ImportError as error:
        hint = "put the module beside the workflow file, or install its package where tramai runs"
        raise StepError("plugin.ImportError", f"cannot import {module_name}: {error}", hint=hint) from error
    except AttributeError as error:
        raise StepError("plugin.ImportError", f"{module_name} has no function {attribute}") from error
    if not callable(found):
        raise StepError("plugin.ImportError", f"{name} cannot be called")
    return found  # type: ignore[no-any-return]
