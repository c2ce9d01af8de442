"""What went wrong in an MCP session, in words and in one of the closed error types."""

from __future__ import annotations

from ..step import StepError

CLOSED, TIMED_OUT = -32000, -32001
"""Codes that the library itself makes: the connection ended, or a request took too long."""
_VERSION = -32022
_REFUSED = {-32601: "does not know what it was asked", -32602: "refused what it was asked"}


def root(error: BaseException | None) -> BaseException | None:
    """The error that matters in a group of them: ours, else the protocol's, else the first."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    from mcp import MCPError

    found: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        else:
            found.append(one)
    for kind in (StepError, MCPError):
        for one in found:
            if isinstance(one, kind):
                return one
    return found[0]


def is_closed(error: BaseException | None) -> bool:
    """Whether it says no more than that the connection ended."""
    import anyio
    from mcp import MCPError

    if isinstance(error, MCPError):
        return error.code == CLOSED
    return error is None or isinstance(error, (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream))


def told(error: BaseException | None, stage: str) -> StepError:
    """An error of the library as one of ours."""
    from mcp import MCPError
    from pydantic import ValidationError

    if isinstance(error, StepError):
        return error
    if isinstance(error, MCPError):
        return _of_protocol(error.code, error.message, stage)
    if isinstance(error, ValidationError):
        return StepError("invalid_output", f"the server sent what is no MCP result ({stage}): {_where(error)}")
    text = _cut(str(error).partition("\n")[0]) or type(error).__name__
    # Also what the library raises for other versions of the protocol and for results that break their own schema.
    return StepError("invalid_output", f"the exchange with the server failed ({stage}): {text}")


def _of_protocol(code: int, message: str, stage: str) -> StepError:
    text = _cut(message)
    if code == TIMED_OUT:
        return StepError("timeout", f"the server did not answer ({stage}): {text}")
    if code == CLOSED:
        return StepError("network", f"the connection to the server ended {stage}: {text}")
    if code == _VERSION:
        return StepError("invalid_output", f"the server speaks other versions of the protocol: {text}")
    if code in _REFUSED:
        return StepError("refused", f"the server {_REFUSED[code]} {stage} (code {code}): {text}")
    return StepError("exit", f"the server answered with an error {stage} (code {code}): {text}")


def _where(error: Exception) -> str:
    """The first thing that is wrong, without the data that is."""
    first = error.errors(include_input=False, include_url=False)[0]  # type: ignore[attr-defined]
    return _cut(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _cut(text: str) -> str:
    return text if len(text) <= 500 else text[:499] + "…"
