"""`pip install tramai` stays light: what it brings is written down, and nothing else comes along."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "installation.md"


def needed(name: str, extra: str = "") -> set[str]:
    """A package and all that it brings here, by name; what is not installed is not needed on this system."""
    found: set[str] = set()
    left = [(name, extra)]
    while left:
        package, wanted = left.pop()
        try:
            written = importlib.metadata.requires(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(canonicalize_name(package))
        for requirement in map(Requirement, written):
            asked = requirement.marker is None or requirement.marker.evaluate({"extra": wanted})
            if asked and canonicalize_name(requirement.name) not in found:
                left.extend((requirement.name, each) for each in ("", *requirement.extras))
    return found


def listed() -> set[str]:
    """The packages of the page's table of the core."""
    table = PAGE.read_text(encoding="utf-8").partition("The core:")[2]
    return {
        canonicalize_name(name) for name in re.findall(r"^\| ([\w.-]+) \| [^|]+ \| [0-9.]+ \|$", table, re.MULTILINE)
    }


def test_the_core_brings_what_the_page_lists_and_nothing_else() -> None:
    here = needed("tramai")
    # Some are needed by one version of Python or of a library and not by another, so the page may list more.
    assert here - listed() == set(), "a package more: is it worth it? then it belongs on the page"
    assert listed() - here <= {"tzdata", "typing-extensions", "importlib-metadata"}


def test_what_is_heavy_is_an_extra() -> None:
    assert (
        needed("tramai") & {"pydantic", "pydantic-ai-slim", "openai", "anthropic", "mcp", "psycopg", "keyring"} == set()
    )
    assert "mcp" in needed("tramai", "mcp")
