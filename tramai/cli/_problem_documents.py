"""Problems in JSON documents."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

Text = str | None


class Place(Struct, frozen=True, kw_only=True):
    """A second place that explains a problem."""

    file: str
    line: int
    column: int
    message: str


class Finding(Struct, frozen=True, kw_only=True):
    """One problem of a workflow file. `fix` is a JSON Patch (RFC 6902)."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: Text
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    path: str
    related: list[Place]
    fix: list[dict[str, Any]] | UnsetType = UNSET
