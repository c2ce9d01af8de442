"""Reads the workflow files that a workflow calls, and what those call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import msgspec

from . import document
from ._nodes import LARGEST_FILE
from .attached import PromptFile
from .definition import Workflow
from .document import Document
from .errors import Pointer, Problem, Related
from .expression import Prompt, suggest
from .hashing import sha256
from .target import Target

DEEPEST = 8
"""How many calls may stand inside each other."""

Read = Callable[[Document, "Reading"], tuple[Workflow | None, tuple[Problem, ...]]]


class Reading:
    """The files that are being read, from the outermost in; and those that were read already."""

    def __init__(self, around: tuple[str, ...], known: dict[str, tuple[Workflow | None, tuple[Problem, ...]]]) -> None:
        self.around = around
        self.known = known

    @classmethod
    def begin(cls, source: Document) -> Reading:
        """Nothing has been read but one file."""
        return cls((os.path.realpath(source.file),), {})


def link(workflow: Workflow, source: Document, reading: Reading, read: Read) -> Iterator[Problem]:
    """Give every `call` its workflow; what is wrong where that cannot be done."""
    for node in workflow.walk():
        for pointer, target in node.step.called():
            if target.workflow is None:
                problem = _resolve(target, (*node.at, node.verb, *pointer), source, reading, read)
                if problem is not None:
                    yield problem
        for pointer, file in node.step.attached():
            if file.prompt is None:
                yield from _attach(file, (*node.at, node.verb, *pointer), source)


def sources(workflow: Workflow) -> dict[str, str]:
    """The files that a workflow was made from besides its own, with the SHA-256 of what stood in them."""
    found: dict[str, str] = {}
    for node in workflow.walk():
        for _, file in node.step.attached():
            if file.sha256 is not None:
                found[os.path.abspath(file.where)] = file.sha256
        for _, target in node.step.called():
            inner = target.workflow
            if inner is not None and inner.document is not None:
                found[os.path.abspath(inner.document.file)] = inner.document.sha256
            found.update(sources(inner) if inner is not None else {})
    return found


def _attach(file: PromptFile, pointer: Pointer, source: Document) -> Iterator[Problem]:
    """Read the text of a file that a step names."""
    path = os.path.normpath(os.path.join(os.path.dirname(source.file), file.path))
    why, hint = None, None
    if "${{" in file.path:
        why, hint = "it takes no expression: it is read before the run", "put a step for each file into a `branch`"
    else:
        try:
            with open(path, "rb") as opened:
                content = opened.read(LARGEST_FILE + 1)
            text = content.decode("utf-8").removeprefix("\ufeff")
            if len(content) > LARGEST_FILE:
                why = "it is larger than 1 MiB"
            elif not text.strip():
                why, hint = "it is empty", "say what the model is asked"
        except FileNotFoundError:
            why, hint = "there is no such file", _near(path, ())
        except OSError as error:
            why = (error.strerror or str(error)).lower()
        except UnicodeDecodeError:
            why, hint = "it is not UTF-8", "save the file as UTF-8"
    if why is not None:
        position = source.position(pointer)
        message = f"cannot use the prompt file {path}: {why}"
        yield Problem(code="TRM318", message=message, hint=hint, position=position, pointer=pointer)
        return
    file.prompt, file.where, file.sha256 = Prompt(text.replace("\r\n", "\n")), path, sha256(content)


def _resolve(target: Target, at: Pointer, source: Document, reading: Reading, read: Read) -> Problem | None:
    if "${{" in target.path:
        what = "the name of a called file takes no expression: it is read before the run"
        return _problem(source, at, what, "put a `call` for each file into a `branch`")
    path = os.path.normpath(os.path.join(os.path.dirname(source.file), target.path))
    real = os.path.realpath(path)
    if real in reading.around:
        loop = [*reading.around[reading.around.index(real) :], real]
        what = " → ".join(os.path.basename(file) for file in loop)
        return _problem(
            source, at, f"`{target.path}` would call itself: {what}", "use `repeat` or `foreach` for a loop"
        )
    if len(reading.around) > DEEPEST:
        return _problem(source, at, f"calls stand more than {DEEPEST} deep at `{target.path}`", None)
    if real not in reading.known:
        try:
            with open(path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            why = "there is no such file" if isinstance(error, FileNotFoundError) else (error.strerror or "").lower()
            return _problem(source, at, f"cannot read the called workflow {path}: {why}", _near(path, _WORKFLOWS))
        inner = msgspec.structs.replace(document.parse(content, file=path), sha256=sha256(content))
        reading.known[real] = read(inner, Reading((*reading.around, real), reading.known))
    found, problems = reading.known[real]
    if found is None:
        errors = [problem for problem in problems if problem.severity == "error"]
        first = errors[0]
        count = "an error" if len(errors) == 1 else f"{len(errors)} errors"
        related = (Related(first.position, first.message),) if first.position is not None else ()
        text = f"the called workflow {path} has {count}: {first.message}"
        return _problem(source, at, text, f"look: tramai validate {path}", related)
    target.workflow = found
    return None


def _problem(
    source: Document, pointer: Pointer, message: str, hint: str | None, related: tuple[Related, ...] = ()
) -> Problem:
    if source.node(pointer) is None:
        pointer = pointer[:-1]
    position = source.position(pointer)
    return Problem(code="TRM315", message=message, hint=hint, position=position, pointer=pointer, related=related)


_WORKFLOWS = (".yaml", ".yml", ".toml")


def _near(path: str, endings: tuple[str, ...]) -> str | None:
    """The file in the same folder that may be meant."""
    folder = os.path.dirname(path) or "."
    try:
        files = [name for name in os.listdir(folder) if not endings or name.endswith(endings)]
    except OSError:
        return f"there is no folder {folder} either"
    near = suggest(os.path.basename(path), files)
    return f"did you mean {os.path.join(os.path.dirname(path), near)}?" if near else "the path starts at this file"
