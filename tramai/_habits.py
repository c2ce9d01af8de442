"""Words from other tools, and the keys of ours that say the same."""

from __future__ import annotations

from typing import Any

ALSO: dict[str, dict[str, tuple[str, ...]]] = {
    "Limits": {"max_step_executions": ("max_steps", "max_executions")},
    "Schedule": {
        "timezone": ("tz", "zone", "time_zone"),
        "cron": ("expression", "expr", "schedule", "cron_expression"),
        "catchup": ("catch_up", "backfill"),
        "overlap": ("concurrency", "concurrency_policy", "concurrencyPolicy"),
        "inputs": ("with", "params", "parameters", "args"),
    },
}
"""By definition and key: what others call it. A misspelt key that is listed here is told the right one."""


def add(definitions: dict[str, Any]) -> None:
    """Write these words into a schema, for whoever explains an unknown key."""
    for name, keys in ALSO.items():
        properties = definitions.get(name, {}).get("properties", {})
        for key, words in keys.items():
            if key in properties:
                properties[key]["x-also"] = list(words)
