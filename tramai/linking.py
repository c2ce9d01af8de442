"""Reads the workflow files that a workflow calls, and what those call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import msgspec

from . import beside, document
from .attached import PromptFile
from .beside import Unreadable
from .definition import Workflow
from .document import Document
from .errors import Pointer, Problem, Related
from .expression import Prompt
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
    """Give every `call` its workflow, and take in what stands in other files; what is wrong where that fails."""
    if "$ref" in source.text:
        from . import _schema_files

        yield from _schema_files.take(workflow, source)
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
    if workflow.document is not None:
        found.update((os.path.abspath(path), digest) for path, digest in workflow.document.beside.items())
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
    path = beside.path_of(file.path, source)
    try:
        if "${{" in file.path:
            hint = "put a step for each file into a `branch`"
            raise Unreadable("it takes no expression: it is read before the run", hint)
        text, content = beside.text_of(path)
        if not text.strip():
            raise Unreadable("it is empty", "say what the model is asked")
    except Unreadable as error:
        message = f"cannot use the prompt file {path}: {error.why}"
        position = source.position(pointer)
        yield Problem(code="TRM318", message=message, hint=error.hint, position=position, pointer=pointer)
        return
    file.prompt, file.where, file.sha256 = Prompt(text.replace("\r\n", "\n")), path, sha256(content)


def _resolve(target: Target, at: Pointer, source: Document, reading: Reading, read: Read) -> Problem | None:
    if "${{" in target.path:
        what = "the name of a called file takes no expression: it is read before the run"
        return _problem(source, at, what, "put a `call` for each file into a `branch`")
    path = beside.path_of(target.path, source)
    real = os.path.realpath(path) if "\0" not in path else path
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
            content = beside.read(path, endings=_WORKFLOWS)
        except Unreadable as error:
            return _problem(source, at, f"cannot read the called workflow {path}: {error.why}", error.hint)
        inner = msgspec.structs.replace(document.parse(content, file=path), sha256=sha256(content))
        reading.known[real] = read(inner, Reading((*reading.around, real), reading.known))
    found, problems = reading.known[real]
    if found is None:
        import shlex

        errors = [problem for problem in problems if problem.severity == "error"]
        first = errors[0]
        count = "an error" if len(errors) == 1 else f"{len(errors)} errors"
        related = (Related(first.position, first.message),) if first.position is not None else ()
        text = f"the called workflow {path} has {count}: {first.message}"
        return _problem(source, at, text, f"look: tramai validate {shlex.quote(path)}", related)
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
