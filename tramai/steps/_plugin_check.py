"""What is wrong with the use of a step type that a package brings, or should bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import structs

from .. import kinds
from ..errors import PluginUnusable, TramaiError
from ..expression import suggest
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


_TOLD = {"check": tuple, "replay": Replay, "pure": bool, "needs_loop": bool, "reaches": tuple, "attached": tuple}
"""What a class is asked before a run, and what it has to answer with."""


def _own(step: Plugin) -> Iterator[Finding]:
    """What the class finds wrong; and where it cannot even be asked."""
    for name, kind in _TOLD.items():
        try:
            said: Any = getattr(step.inner, name)()
        except Exception as error:  # noqa: BLE001 - the edge to a foreign class, which may raise anything
            yield _odd(step, f"`{name}` raised {type(error).__name__}: {error}")
            continue
        fits = isinstance(said, kind)
        if not fits:
            yield _odd(step, f"`{name}` gave {type(said).__name__}")
        elif name == "check":
            yield from (one for one in said if isinstance(one, Finding))


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
