"""What a run keeps, as texts: canonical JSON, without secrets, no larger than it may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .caps import MAX_VALUE, Caps
from .codec import Json, NotJson, encode
from .outcomes import StepFailed
from .redact import Redactor
from .step import StepError

LONGEST_MESSAGE = 1 << 14
"""Characters that are kept of a message whose record is too large."""


class Texts:
    """Makes the texts of one run's journal."""

    def __init__(self, redactor: Redactor, caps: Caps) -> None:
        self._redactor = redactor
        self.caps = caps

    def value(self, value: Any, what: str) -> str:
        """The text of a value; StepError for what JSON cannot say or a run may not keep. `what` names it."""
        try:
            text = self._redactor.json(encode(value))
        except NotJson as error:
            hint = "turn it into text, a number, a boolean, a list or a map with text keys"
            raise StepError("invalid_output", f"`{what}` cannot be kept: {error}", hint=hint) from error
        self.caps.value(text, value, what)
        return text

    def saves(self, saves: Mapping[str, Json]) -> str:
        """The text of what a step saves, once the state has room for it."""
        texts = {name: self.value(value, f"state.{name}") for name, value in sorted(saves.items())}
        sizes = {name: self.caps.grown(name, len(text)) for name, text in texts.items()}
        self.caps.state(sizes)
        self.caps.saved(sizes)
        return "{" + ",".join(f"{encode(name)}:{text}" for name, text in texts.items()) + "}"

    def error(self, failed: StepFailed) -> str:
        """The text of a failure's record, which loses its details where they cannot be kept."""
        failed.error = self._redactor.error(failed.error)
        try:
            text = encode(failed.error)
        except NotJson:
            text = ""
        if not text or len(text) > MAX_VALUE:
            kept = {name: failed.error[name] for name in ("type", "step", "path", "attempt")}
            failed.error = {**kept, "message": str(failed.error["message"])[:LONGEST_MESSAGE]}
            text = encode(failed.error)
        return text
