"""Another workflow file, as a step names it: the path, and the workflow once the file was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .definition import Workflow


class Target:
    """What a `call` calls. The file is read when the file around it has been: until then there is only its path.

    A class of its own, as `step.Block` is, so that a verb's settings can hold a workflow.
    """

    __slots__ = ("path", "workflow")

    def __init__(self, path: str, workflow: Workflow | None = None) -> None:
        self.path = path
        self.workflow = workflow

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The path of a file."""
        return {"type": "string", "minLength": 1, "pattern": r"\S"}
