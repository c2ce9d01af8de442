"""Every error tramai raises: its text, its code, its exit status and its place."""

from __future__ import annotations

import os

import msgspec

Pointer = tuple[str | int, ...]
"""Where a value stands inside a document: keys and list indexes from the root, like a JSON pointer."""


class Position(msgspec.Struct, frozen=True):
    """A range in a source file; lines and columns count characters from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class Related(msgspec.Struct, frozen=True):
    """A second place that explains a problem, such as the first of two equal keys."""

    position: Position
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One finding about a definition: an error or a warning, with its place and a way to mend it."""

    code: str
    message: str
    hint: str | None = None
    note: str = ""
    """A few words behind the caret."""
    severity: str = "error"
    position: Position | None = None
    pointer: Pointer = ()
    related: tuple[Related, ...] = ()
    fix: tuple[dict[str, object], ...] | None = None

    @property
    def path(self) -> str:
        """The pointer as RFC 6901 text."""
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.pointer)

    def sort_key(self) -> tuple[object, ...]:
        """Order of report: by file, then place, then code."""
        at = self.position
        return (at.file, at.line, at.column, self.code) if at else ("", 0, 0, self.code)


class TramaiError(Exception):
    """something went wrong"""

    # The docstring of each subclass is the text a person reads, filled in from the keyword arguments.
    code = "TRM400"
    exit_status = 1

    def __init__(self, *, hint: str | None = None, position: Position | None = None, **details: object) -> None:
        self.hint = hint
        self.position = position
        self.details = details
        for name, value in details.items():
            if isinstance(getattr(type(self), name, None), property) or name in {"args", "code", "exit_status"}:
                raise TypeError(f"an error cannot carry a detail named {name!r}")
            setattr(self, name, value)
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The docstring with the details filled in."""
        text = " ".join((type(self).__doc__ or "").split())
        return text.format_map(self.details)


_QUOTED = r"""'[^'\n]*[/\\.][^'\n]*'|"[^"\n]*[/\\.][^"\n]*\""""
_PLACE = _QUOTED + r"""|(?<![\w/])(?:[a-z][\w+.-]*:/?/?|~|\.{1,2})?/[^\s'"),;]*[^\s'"),;:.]"""
"""A path or a URL, quoted or bare."""


class Fault(TramaiError):
    """something failed that nobody who reads this has to know more about"""

    # Its text is a fixed sentence. `id` is what it can be looked up by, where diagnostics are kept; `told` is what was
    # said where it came up, for diagnostics alone: no path and no URL in it is ever shown.

    def __init__(
        self, *, what: str, hint: str | None = None, position: Position | None = None, **details: object
    ) -> None:
        self.id = os.urandom(4).hex()
        self.told = what
        self.diagnosed = False
        super().__init__(hint=_placeless(hint or "") or None, position=position, what=_placeless(what), **details)

    def __str__(self) -> str:
        return f"{self.message} (ref {self.id})"


def _placeless(text: str) -> str:
    """The text without paths and URLs: what begins with one is said of "it"."""
    if not any(mark in text for mark in "/\\'\""):
        return text
    import re

    return re.sub(_PLACE, lambda found: "…" if found.start() else "it", text)


class BugError(Fault):
    """internal error: {what}"""

    code = "TRM499"
    exit_status = 70


class InvalidDefinition(TramaiError):
    """{file} is not a valid workflow"""

    code = "TRM100"
    exit_status = 3

    def __init__(self, problems: tuple[Problem, ...], *, file: str) -> None:
        self.problems = problems
        super().__init__(file=file)


class UsageError(TramaiError):
    """{what}"""

    code = "TRM701"
    exit_status = 2


class InvalidInput(TramaiError):
    """input '{name}' {what}"""

    code = "TRM702"
    exit_status = 2


class ConfigurationError(TramaiError):
    """{what}"""

    code = "TRM703"
    exit_status = 3


class NotFound(TramaiError):
    """no such {kind}: {name}"""

    code = "TRM704"
    exit_status = 4


class PluginUnusable(TramaiError):
    """{what}"""

    code = "TRM705"
    exit_status = 3


class CannotFormat(TramaiError):
    """{file} stays as it is: {what}"""

    code = "TRM730"
    exit_status = 1


class CannotConvert(TramaiError):
    """{file} cannot be converted to {to}: {what}"""

    code = "TRM731"
    exit_status = 1


class SecretMissing(TramaiError):
    """secret '{name}' is not set ({source})"""

    code = "TRM601"
    exit_status = 6


class SecretTooShort(TramaiError):
    """secret '{name}' has {count}, too few to be masked ({source})"""

    code = "TRM604"
    exit_status = 6


class CredentialsRefused(TramaiError):
    """{what}"""

    code = "TRM602"
    exit_status = 6


class ExtraMissing(TramaiError):
    """{what} needs the extra '{extra}'"""

    code = "TRM603"
    exit_status = 3


class KeyMissing(TramaiError):
    """the model provider '{name}' has no key: {what}"""

    code = "TRM620"
    exit_status = 6


class ProviderUnknown(TramaiError):
    """there is no model provider '{name}'"""

    code = "TRM621"
    exit_status = 3


class DefinitionChanged(TramaiError):
    """the definition of run {run_id} has changed since it started"""

    code = "TRM501"
    exit_status = 5


class LeaseHeld(TramaiError):
    """run {run_id} is owned by {owner} until {until}"""

    code = "TRM502"
    exit_status = 5


class LeaseLost(TramaiError):
    """Workflow lease is no longer active"""

    code = "TRM503"
    exit_status = 5


class CheckpointConflict(TramaiError):
    """Workflow checkpoint conflict"""

    code = "TRM504"
    exit_status = 5


class OutcomeUnknown(TramaiError):
    """the outcome of step '{path}' is unknown: it started, and its end was not seen"""

    code = "TRM505"
    exit_status = 5


class NotInThatState(TramaiError):
    """run {run_id} is {status}: {what}"""

    code = "TRM507"
    exit_status = 5


class RunCancelled(NotInThatState):
    """run {run_id} is cancelled"""

    code = "TRM506"


class GroupFull(TramaiError):
    """the group '{group}' has no place ({limit} at a time): before this run comes {held}"""

    code = "TRM450"
    exit_status = 5


class UnfitGroup(TramaiError):
    """the name of the group of this run {what}"""

    code = "TRM451"
    exit_status = 2


class StoreUnavailable(Fault):
    """the store cannot be used: {what}"""

    code = "TRM510"
    exit_status = 7


class StoreTooNew(TramaiError):
    """the store has format {found}; this tramai knows formats up to {known}"""

    code = "TRM511"
    exit_status = 7


class CheckpointCorrupt(Fault):
    """corrupt checkpoint: {what}"""

    code = "TRM512"
    exit_status = 7
