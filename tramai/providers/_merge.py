"""One JSON Schema out of two, and when two values are the same to it."""

from __future__ import annotations

from typing import Any


def merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """One schema that asks for both, as far as that can be said; the validator judges the result anyway."""
    merged = dict(left)
    for name, part in right.items():
        if name not in merged:
            merged[name] = part
        elif name == "properties":
            merged[name] = {**merged[name], **{key: _both(merged[name].get(key), value) for key, value in part.items()}}
        elif name in ("required", "examples"):
            merged[name] = [*merged[name], *(item for item in part if item not in merged[name])]
        elif name == "enum":
            merged[name] = [item for item in merged[name] if any(same(item, other) for other in part)]
        elif name == "type":
            merged[name] = _common(merged[name], part)
        elif name in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
            merged[name] = max(merged[name], part)
        elif name in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
            merged[name] = min(merged[name], part)
        elif name in ("items", "additionalProperties"):
            merged[name] = _both(merged[name], part)
        else:
            merged[name] = part
    return merged


def same(left: Any, right: Any) -> bool:
    """Equal as JSON Schema sees it: 1 is 1.0, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    return bool(left == right)


def _both(left: Any, right: Any) -> Any:
    return right if left is None or left is True else left if right is True else {"allOf": [left, right]}


def _common(left: Any, right: Any) -> Any:
    ours = [left] if isinstance(left, str) else left
    theirs = [right] if isinstance(right, str) else right
    both = [kind for kind in ours if kind in theirs]
    if "integer" in (*ours, *theirs) and "integer" not in both and "number" in (*ours, *theirs):
        both.append("integer")
    return both[0] if len(both) == 1 else both
