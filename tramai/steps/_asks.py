"""What steps share that ask somebody who may be wrong: where the prompt stands, and what the full record is like."""

from __future__ import annotations

from typing import Any

from ..attached import PromptFile
from ..codec import Json
from ..errors import Pointer
from ..expression import Prompt
from ..step import Finding

_SPENT = {"input_tokens": {"type": "integer"}, "output_tokens": {"type": "integer"}, "cost_usd": {}}


def one_prompt(verb: str, prompt: Prompt | None, file: PromptFile | None, wanted: str) -> list[Finding]:
    """What is wrong with where the prompt stands; `wanted` says what to write into an empty one."""
    step = f"{'an' if verb == 'ai' else 'a'} {verb} step"
    if prompt is None and file is None:
        return [Finding((), "TRM105", f"missing key `prompt` in {step}", "add `prompt`, or `prompt_file`")]
    if prompt is not None and file is not None:
        return [Finding(("prompt_file",), "TRM319", f"{step} has one prompt, not two", "keep one of the two")]
    if prompt is not None and not prompt.text.strip():
        return [Finding(("prompt",), "TRM388", "the prompt is empty", wanted)]
    return []


def attached(file: PromptFile | None) -> tuple[tuple[Pointer, PromptFile], ...]:
    """The file of the prompt, for `Step.attached`."""
    return ((("prompt_file",), file),) if file is not None else ()


def prompt_of(prompt: Prompt | None, file: PromptFile | None) -> Prompt:
    """The prompt, wherever it stands."""
    found = prompt if file is None else file.prompt
    assert found is not None  # `one_prompt` refuses a step without either, linking a file that cannot be read
    return found


def output(result: Any) -> Json:
    """The data with `schema`, the text without."""
    return result["value"] if "value" in result else result["text"]  # type: ignore[no-any-return]


def shape(schema: dict[str, Any] | None) -> dict[str, Any]:
    """What `schema` says, or text."""
    return schema if schema is not None else {"type": "string"}


def record(schema: dict[str, Any] | None, **told: Any) -> dict[str, Any]:
    """The shape of the full record: the answer, what it cost, and what else is told."""
    value = {"value": schema} if schema is not None else {}
    usage = {"type": "object", "properties": _SPENT}
    return {"type": "object", "properties": {"text": {"type": "string"}, **value, "usage": usage, **told}}


def note(result: Any) -> str:
    """What it consumed, for those who watch."""
    usage = result["usage"]
    spent = f"{usage.get('input_tokens', 0):,} in / {usage.get('output_tokens', 0):,} out tokens"
    cost = usage.get("cost_usd")
    return f"{spent}, ${cost:.4f}" if cost else spent
