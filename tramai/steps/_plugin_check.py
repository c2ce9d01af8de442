"""What is wrong with the use of a step type that a package brings, or should bring."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import structs

from .. import kinds
from ..attached import PromptFile
from ..errors import PluginUnusable, TramaiError
from ..expression import suggest
from ..permits import Permits
from ..step import Finding, Replay
from ._plugin_kind import FAMILY, load

if TYPE_CHECKING:
    from .plugin import Plugin


class PluginMissing(TramaiError):
    """step type '{name}' {what}"""

    code = "TRM706"
    exit_status = 3


def findings(step: Plugin) -> Iterator[Finding]:
    """Not installed, not usable; or what the step type itself finds wrong with its settings."""
    name = step.name
    try:
        load(name)
    except PluginUnusable as error:
        yield Finding(("use",), "TRM430", error.message, error.hint)
        return
    except KeyError:
        yield Finding(("use",), "TRM399", f"no installed package brings the step type `{name}`", _install(name))
        return
    if step.inner is None:
        return
    for found in _own(step):
        # One code for the rules of all packages: it can be explained, and no two of them mean two things by one.
        code = found.code if found.code == "TRM430" else "TRM431"
        yield structs.replace(found, code=code, pointer=("with", *found.pointer), fix=None)


_TOLD: dict[str, type] = {
    "check": tuple,
    "replay": Replay,
    "pure": bool,
    "needs_loop": bool,
    "spawning": bool,
    "reaches": tuple,
    "attached": tuple,
}
"""What a class is asked before a run, and what it has to answer with."""


def is_reach(said: Any) -> bool:
    """Whether one of the things that a class reaches for can be meant."""
    if not (isinstance(said, tuple) and 3 <= len(said) <= 4 and isinstance(said[1], tuple)):
        return False
    return said[0] in _KINDS and isinstance(said[2], str | None)


def is_attached(said: Any) -> bool:
    """Whether one of the files that a class names can be meant."""
    return isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], tuple) and isinstance(said[1], PromptFile)


def _is_finding(said: Any) -> bool:
    return (
        isinstance(said, Finding)
        and isinstance(said.pointer, tuple)
        and isinstance(said.message, str)
        and isinstance(said.hint, str | None)
        and said.severity in ("error", "warning")
    )


_KINDS = frozenset(Permits.__struct_fields__)
_PARTS = {"check": _is_finding, "reaches": is_reach, "attached": is_attached}
"""What each part of such an answer has to be."""


def _own(step: Plugin) -> Iterator[Finding]:
    """What the class finds wrong; and where it cannot even be asked."""
    for name, kind in _TOLD.items():
        try:
            with contextlib.redirect_stdout(sys.stderr):  # standard output may be one JSON document
                said: Any = getattr(step.inner, name)()
        except Exception as error:  # noqa: BLE001 - the edge to a foreign class, which may raise anything
            yield _odd(step, f"`{name}` raised {type(error).__name__}: {error}")
            continue
        if not isinstance(said, kind):
            yield _odd(step, f"`{name}` gave {type(said).__name__}")
            continue
        fits = _PARTS.get(name)
        parts: tuple[Any, ...] = tuple(said) if fits is not None else ()  # type: ignore[arg-type]
        strange = [one for one in parts if fits is not None and not fits(one)]
        if strange:
            yield _odd(step, f"`{name}` gave {repr(strange[0])[:80]} among others")
        if name == "check":
            yield from (one for one in parts if _is_finding(one))


def _odd(step: Plugin, what: str) -> Finding:
    hint = "report it to those who maintain its package"
    return Finding((), "TRM430", f"the step type `{step.name}` is broken: {what}", hint)


def _install(name: str) -> str:
    """What may be meant, or how to find what brings it."""
    known = sorted({one.name for one in kinds.added(FAMILY)})
    near = suggest(name, known)
    if near is not None:
        return f"did you mean `{near}`?"
    here = f"; installed are: {', '.join(known)}" if known else ""
    if name in kinds.names(FAMILY):
        return f"`{name}` is built in: write `{name}: …`"
    return f"install the package that brings it, where tramai is installed{here}"


def missing(step: Plugin) -> TramaiError:
    """Why a step of a run that has begun cannot be carried out here."""
    try:
        edition = load(step.name).edition
    except PluginUnusable as error:
        return error
    except KeyError:
        hint = "install the package that brings it, as it was when the run was started"
        return PluginMissing(name=step.name, what="is brought by no installed package", hint=hint)
    began = step.use.partition("@")[2]
    if began and began != str(edition):
        what = f"is here in edition {edition}; the run was started with edition {began}"
    else:
        what = "does not take the settings any more that the run was started with"
    return PluginMissing(name=step.name, what=what, hint="install the version of its package that the run began with")
