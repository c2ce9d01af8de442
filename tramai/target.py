"""Another workflow file, as a step names it: the path, and the workflow once the file was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .errors import Pointer

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

    def reaches(self, at: Pointer) -> tuple[tuple[Any, ...], ...]:
        """All that the workflow reaches for, as reached for at this pointer: its caller's permits bind it."""
        nodes = self.workflow.walk() if self.workflow is not None else ()
        inner = [reach for node in nodes for reach in node.step.reaches()]
        return tuple(dict.fromkeys((kind, at, name, *more) for kind, _, name, *more in inner))

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The path of a file."""
        return {"type": "string", "minLength": 1, "pattern": r"\S"}


class Described(Target):
    """A Target that is chosen by what is said of it: what is told is part of what its caller does."""

    __slots__ = ("_told",)

    def __init__(self, path: str, workflow: Workflow | None = None) -> None:
        super().__init__(path, workflow)
        self._told: dict[str, Any] | None = None

    @property
    def told(self) -> dict[str, Any]:
        """`description` of the workflow, and a JSON `schema` of its inputs with theirs, once the file was read."""
        if self._told is None:
            assert self.workflow is not None
            shapes = msgspec.to_builtins(self.workflow.inputs)
            schema: dict[str, Any] = {"type": "object", "properties": shapes, "additionalProperties": False}
            for shape in shapes.values():
                shape.pop("optional", None)
            needed = [name for name, spec in self.workflow.inputs.items() if spec.needed]
            if needed:
                schema["required"] = needed
            self._told = {"description": self.workflow.description, "schema": schema}
        return self._told

    @told.setter
    def told(self, told: dict[str, Any]) -> None:
        """As it stands in a canonical form, in which no workflow has a description."""
        self._told = told
