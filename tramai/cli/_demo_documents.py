"""The JSON document of `tramai demo`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Text = str | None


class DemoPart(Struct, frozen=True, kw_only=True):
    """One call of `run` or `resume`: how the run stood after it."""

    status: str
    exit_status: int
    began: Annotated[list[str], Meta(description="the paths that this call began, in order")]
    failed: Annotated[Text, Meta(description="the path that failed")]


class JournalLine(Struct, frozen=True, kw_only=True):
    """What the journal holds of one path."""

    path: str
    verb: str
    status: str
    attempts: int


class Demo(Struct, frozen=True, kw_only=True):
    """`demo`: a run that failed, what mended it, and the resume that did the rest."""

    schema: Literal["tramai.demo/1"] = "tramai.demo/1"
    folder: str
    file: str
    run_id: str
    run: DemoPart
    mended: Annotated[str, Meta(description="the command that took the cause of the failure away")]
    resume: DemoPart
    repeated: Annotated[list[str], Meta(description="paths that had ended and began again: none")]
    charged: Annotated[list[str], Meta(description="the lines of ledger.txt, which each step writes once")]
    journal: list[JournalLine]
    next: Annotated[list[str], Meta(description="commands to go on with")]


DOCUMENTS = (Demo,)
