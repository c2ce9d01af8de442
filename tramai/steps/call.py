"""`call`: run another workflow file as one step."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from ..codec import Json
from ..errors import Pointer
from ..expression import Value
from ..running import Context, Known
from ..step import Outcome, Replay, Step
from ..target import Target


class Call(Step, frozen=True, kw_only=True, rename={"with_": "with"}):
    """Run another workflow with inputs of its own; its outputs are the output. It has its own run record."""

    scalar: ClassVar[str | None] = "workflow"
    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = True
    answers: ClassVar[bool] = False

    workflow: Annotated[
        Target,
        msgspec.Meta(description="The file, from the folder of this one; never templated.", examples=["./post.yaml"]),
    ]
    with_: Annotated[
        dict[str, Value],
        msgspec.Meta(description="Its inputs.", examples=[{"repo": "${{ inputs.repo }}"}]),
    ] = {}
    secrets: Annotated[
        tuple[str, ...] | dict[str, str],
        msgspec.Meta(
            description="Secrets that it is given, by name: `[NAME]`, or `{its_name: OUR_NAME}`. Others it fetches "
            "from the sources it declares.",
            examples=[["GITHUB_TOKEN"]],
        ),
    ] = ()

    def called(self) -> tuple[tuple[Pointer, Target], ...]:
        """The workflow that runs."""
        return ((("workflow",), self.workflow),)

    def passed(self) -> dict[str, str]:
        """The secrets it is given: its name for each, and ours."""
        return dict(self.secrets) if isinstance(self.secrets, dict) else {name: name for name in self.secrets}

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """All that the called workflow reaches for: the permits of its caller bind it."""
        return self.workflow.reaches(("workflow",))

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The outputs that the other file declares."""
        found = self.workflow.workflow
        if found is None or found.catch:
            return None
        return {"type": "object", "properties": {name: {} for name in found.outputs}, "additionalProperties": False}

    def output(self, result: Any) -> Json:
        """Its outputs."""
        return result["outputs"]  # type: ignore[no-any-return]

    def note(self, result: Any) -> str | None:
        """The run it was."""
        return f"run {result['run_id'][-8:]}"

    async def run(self, ctx: Context) -> Outcome:
        """Start it, or go on with it."""
        return await ctx.call(
            self.workflow, {name: ctx.value(value) for name, value in self.with_.items()}, self.passed()
        )
