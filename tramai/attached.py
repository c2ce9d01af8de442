"""A file beside a workflow whose text is part of it, such as a prompt."""

from __future__ import annotations

from typing import Any

from .expression import Prompt


class PromptFile:
    """The path of a prompt, and the prompt once the file was read; the file around it is read first.

    `sha256` is that of the bytes of the file.
    """

    __slots__ = ("path", "prompt", "sha256", "where")

    def __init__(self, path: str, prompt: Prompt | None = None) -> None:
        self.path = path
        self.prompt = prompt
        self.where = path
        """The path as it was found, for places in it."""
        self.sha256: str | None = None

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The path of a file."""
        return {"type": "string", "minLength": 1, "pattern": r"\S"}
