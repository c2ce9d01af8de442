"""Make the generated parts of the language reference: `python -m tramai.cli._language docs/reference/language.md`.

A part stands between `<!-- part: NAME -->` and `<!-- end -->`; what is around it is written by hand.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .. import error_types, schema
from . import _reference

if TYPE_CHECKING:
    from ._file_documents import KeyHelp, Reference

PART = re.compile(r"(?P<open><!-- part: (?P<name>[^\n]+) -->\n).*?(?P<close><!-- end -->)", re.S)
_ELSEWHERE = {"step", "JsonSchema", "verification"}
"""Definitions that are no table of their own: they have a part, or a page of a standard."""
FAMILIES = {
    "1": "Syntax and shape",
    "2": "Expressions and references",
    "3": "Settings, secrets and advice",
    "4": "While a run goes on",
    "5": "Stores and leases",
    "6": "Secrets and providers",
    "7": "The command line",
}


def filled(page: str) -> str:
    """The page with every part made anew."""
    named = set(PART.findall(page))
    asked = {name for _, name, _ in named}
    return PART.sub(lambda found: f"{found['open']}\n{_part(found['name'], asked)}\n{found['close']}", page)


def _part(name: str, asked: set[str]) -> str:
    """The text of a part: a family of its own, or the tables of definitions."""
    special = {
        "top": lambda: _table(_keys(schema.workflow_schema())),
        "step": lambda: _table(_reference.common().keys),
        "verify": lambda: _table(_keys(_definitions()["verification"], but=set(_reference.verbs()))),
        "verbs": lambda: "\n".join(_verb(name) for name in _reference.verbs()),
        "others": lambda: "\n".join(_other(name) for name in _unasked(asked)) or "None.\n",
        "error types": lambda: ", ".join(f"`{word}`" for word in error_types.ERROR_TYPES) + ".\n",
        "codes": lambda: "\n".join(_codes()),
    }
    if name in special:
        return special[name]()
    found = _definitions()[name]
    return f"{found.get('description', '')}\n\n{_table(_keys(found))}".lstrip("\n")


def _definitions() -> dict[str, Any]:
    found = schema.workflow_schema()["definitions"]
    assert isinstance(found, dict)
    return found


def _unasked(asked: set[str]) -> Iterator[str]:
    """Definitions that stand nowhere else on the page."""
    classes = {name.capitalize() for name in _reference.verbs()}
    return (name for name in _definitions() if name not in asked | classes | _ELSEWHERE)


def _other(name: str) -> str:
    found = _definitions()[name]
    return f"#### {found.get('title', name)}\n\n{found.get('description', '')}\n\n{_table(_keys(found))}"


def _keys(found: dict[str, Any], but: Iterable[str] = ()) -> list[KeyHelp]:
    return _reference.keys_of({**found, "properties": {k: v for k, v in found["properties"].items() if k not in but}})


def _verb(name: str) -> str:
    found = _reference.step(name)
    assert found is not None
    lines = [f"### `{name}`\n", f"{found.description}\n", *_facts(found), "", _table(found.keys)]
    return "\n".join(lines)


def _facts(found: Reference) -> Iterator[str]:
    short = f"The short form `{found.name}: …` sets `{found.short}`. " if found.short else ""
    yield f"{short}Replay: `{found.replay}`, unless its settings say otherwise. [More](steps/{found.name}.md)."


def _table(keys: Iterable[KeyHelp]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for one in keys:
        default = "**required**" if one.required else _code(one.default)
        rows.append(f"| `{one.key}` | {_cell(one.type)} | {default} | {_cell(one.description or '')} |")
    return "\n".join(rows) + "\n"


def _code(value: Any) -> str:
    if value is None:
        return ""
    return f"`{_cell(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _codes() -> Iterator[str]:
    """Every code with the title of its page."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "explain")
    family = ""
    for name in sorted(os.listdir(folder)):
        code = name.removesuffix(".md")
        if not code.startswith("TRM"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            title = file.readline().removeprefix("# ").strip()
        if code[3] != family:
            family = code[3]
            yield ("" if code == "TRM100" else "\n") + f"**{FAMILIES.get(family, family)}**\n"
        yield f"- [`{code}`](../../tramai/explain/{name}) {title}"
    yield ""


if __name__ == "__main__":
    import sys

    with open(sys.argv[1], encoding="utf-8") as page:
        text = page.read()
    with open(sys.argv[1], "w", encoding="utf-8") as page:
        page.write(filled(text))
