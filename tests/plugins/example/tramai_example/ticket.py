"""`ticket`: open a ticket in a file of JSON lines."""

# No annotations from the future here, as in every module with Structs that a short run reads.

import json
import os
import time
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from tramai.duration import Duration
from tramai.expression import Condition, Prompt, Text, Value
from tramai.running import Context, Known
from tramai.step import Done, Finding, Outcome, Step, StepError


class Board(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the ticket goes."""

    file: Annotated[Text, Meta(description="The file, from the folder in which the run was started.")]
    column: Annotated[Literal["new", "doing"], Meta(description="The column it stands in.")] = "new"


class Ticket(Step, frozen=True, kw_only=True):
    """Open a ticket."""

    straight: ClassVar[bool] = True
    sinks: ClassVar[frozenset[str]] = frozenset({"token"})

    title: Annotated[Text, Meta(description="What it is about.", examples=["the build is red"])]
    board: Annotated[Board, Meta(description="Where it goes.")]
    body: Annotated[Prompt | None, Meta(description="The whole story.")] = None
    priority: Annotated[Literal["low", "normal", "high"], Meta(description="How soon it must be seen to.")] = "normal"
    copies: Annotated[int, Meta(ge=1, le=5, description="How often it is written down.")] = 1
    labels: Annotated[tuple[str, ...], Meta(description="Words to find it by.")] = ()
    fields: Annotated[dict[str, Value], Meta(description="Anything else.")] = {}
    unless: Annotated[Condition | None, Meta(description="No ticket is opened if this is true.")] = None
    pause: Annotated[Duration, Meta(description="Time between the ticket and the end of the step.")] = Duration(0.0)
    token: Annotated[Text | None, Meta(description="What lets us in.")] = None

    def check(self) -> tuple[Finding, ...]:
        """A ticket of high priority says why."""
        if self.priority == "high" and self.body is None:
            return (Finding(("priority",), "TRM431", "a ticket of high priority needs a body", "add `body`"),)
        return ()

    def shape(self, known: Known) -> dict[str, Any] | None:
        """Its number and its title."""
        return {
            "type": "object",
            "properties": {"number": {"type": "integer"}, "title": {"type": "string"}},
            "additionalProperties": False,
        }

    async def run(self, ctx: Context) -> Outcome:
        """Write it down."""
        if self.unless is not None and ctx.test(self.unless):
            raise StepError("refused", "no ticket is wanted")
        path = os.path.join(ctx.cwd, ctx.text(self.board.file))
        ticket = {
            "title": ctx.text(self.title),
            "body": None if self.body is None else ctx.text(self.body),
            "column": self.board.column,
            "fields": {name: ctx.value(value) for name, value in self.fields.items()},
            "signed": self.token is not None and len(ctx.text(self.token)),
        }
        if ticket["title"] == "boom":
            raise KeyError("boom")
        return Done(await ctx.blocking(lambda: self._open(path, ticket)))

    def _open(self, path: str, ticket: dict[str, Any]) -> dict[str, Any]:
        with open(path, "a", encoding="utf-8") as file:
            for _ in range(self.copies):
                print(json.dumps(ticket), file=file, flush=True)
        time.sleep(self.pause)
        with open(path, encoding="utf-8") as file:
            return {"number": len(file.readlines()), "title": ticket["title"]}
