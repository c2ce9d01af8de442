"""The text of a Markdown checkpoint: how a run is written for people, and read back from the same words.

Front matter with every field of the header, one a line; the inputs; a section for each record and event, in the order
in which they came; outputs and error; the definition. Two checksums stand in the front matter: `body`, of all that
follows it, and `checksum`, of the lines above it. Both are taken of the text with plain line ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from ..errors import CheckpointCorrupt, StoreTooNew
from ..hashing import sha256
from ..store import Definition, Mark, Note, Record, Run
from ._markdown_words import fence_text, instant, json_fence, opens_fence, scalar, scalar_value, shown, text_fence

FORMAT = 1
TEXTS = ("inputs", "outputs", "error")
"""Fields of the header that stand in sections of their own."""

_TIMES = {"created", "updated", "finished", "wake_at", "at", "started"}
_FRONT = tuple(name for name in Run.__struct_fields__ if name not in (*TEXTS, "format"))
_FACTS = (
    "seq",
    "path",
    "mark",
    "attempt",
    "verb",
    "started",
    "at",
    "fence",
    "worker",
    "policy",
    "key",
    "input_sha",
    "log",
)
_BLOCKS = ("value", "error", "saves", "usage")
_FRONT_END = "\n---\n\n"
_NOTICE = "Written by tramai. Read it, compare it, keep it; what was edited by hand is refused as damaged.\n"

Damaged = Callable[[], CheckpointCorrupt]
"""Makes the error about the text at hand."""

_T = TypeVar("_T", Record, Note, Definition)


class Front(msgspec.Struct, frozen=True):
    """What the front matter says: the header without its texts, the definitions in the file, the seal of the body."""

    run: Run
    definitions: tuple[str, ...]
    body: str


class Written:
    """All that a checkpoint holds, each part read when it is asked for. `damaged` is raised for what cannot be."""

    def __init__(self, front: Front, body: str, damaged: Damaged) -> None:
        self._front = front
        self._damaged = damaged
        self.run_id = front.run.run_id
        self._texts: list[_Section] = []
        self._definitions: list[_Section] = []
        self._records: list[_Section] = []
        self._notes: list[_Section] = []
        begin = end = 0
        for section in _sections(body):
            words = section.heading
            if begin and not end and words.startswith("## "):
                end = section.begin
            if words == "## Journal":
                begin = section.begin + len("## Journal\n\n")
            self._kind(words).append(section)
        self.journal = body[begin:end]
        """The text of the sections of records and events."""

    def _kind(self, heading: str) -> list[_Section]:
        if heading.startswith("### Event "):
            return self._notes
        if heading.startswith("### "):
            return self._records
        return self._definitions if heading == "## Definition" else self._texts

    def run(self) -> Run:
        """The header, its texts in it."""
        texts: dict[str, str] = {}
        with _or(self._damaged):
            for section in self._texts:
                texts.update(section.texts())
        return msgspec.structs.replace(self._front.run, **texts)

    def records(self) -> tuple[Record, ...]:
        """The journal, in order and none missing."""
        with _or(self._damaged):
            found = tuple(section.noun(Record) for section in self._records)
        if [record.seq for record in found] != list(range(1, len(found) + 1)):
            raise self._damaged()
        return found

    def notes(self) -> tuple[Note, ...]:
        """The events, likewise."""
        with _or(self._damaged):
            found = tuple(section.noun(Note) for section in self._notes)
        if [note.seq for note in found] != list(range(1, len(found) + 1)):
            raise self._damaged()
        return found

    def definitions(self) -> tuple[Definition, ...]:
        """The sources kept in it."""
        with _or(self._damaged):
            return tuple(section.noun(Definition) for section in self._definitions)


@contextmanager
def _or(damaged: Damaged) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, msgspec.ValidationError):
        raise damaged() from None


class _Section:
    """A heading with what stands under it, not yet read: where only the header is wanted, most of it never is."""

    def __init__(self, heading: str, begin: int) -> None:
        self.heading = heading
        self.begin = begin
        self.facts: list[str] = []
        self.blocks: list[tuple[str, list[str]]] = []

    def texts(self) -> dict[str, str]:
        """The fenced blocks by name."""
        found = {}
        for line, content in self.blocks:
            name, form = opens_fence(line)
            found[name] = fence_text(form, "\n".join(content))
        return found

    def noun(self, kind: type[_T]) -> _T:
        """The Struct that facts and blocks make."""
        return msgspec.convert(dict(map(_fact, self.facts)) | self.texts(), kind)


def record_section(record: Record) -> str:
    """The section of a journal record."""
    took = "" if record.started is None else f" in {max(0.0, record.at - record.started):.3g} s"
    ended = took if record.mark in (Mark.COMPLETED, Mark.FAILED, Mark.CANCELLED) else ""
    heading = f"### {record.seq}. {shown(record.path)}: {record.mark.value}{ended}\n\n"
    return heading + _facts(record, _FACTS) + _blocks(record, _BLOCKS)


def note_section(note: Note) -> str:
    """The section of an event."""
    heading = f"### Event {note.seq}. {shown(note.type)}\n\n"
    return heading + _facts(note, ("seq", "type", "at", "by", "comment")) + _blocks(note, ("data",))


def render(run: Run, definitions: Iterable[Definition], journal: str) -> str:
    """The whole text of a checkpoint."""
    parts = [f"# A run of {shown(run.workflow)}\n\n{_NOTICE}\n## Inputs\n\n{json_fence('inputs', run.inputs)}\n"]
    parts.append(f"## Journal\n\n{journal}")
    for name in ("outputs", "error"):
        text = getattr(run, name)
        if text is not None:
            parts.append(f"## {name.capitalize()}\n\n{json_fence(name, text)}\n")
    kept = tuple(definitions)
    parts.extend(_definition_section(definition) for definition in kept)
    body = "".join(parts).rstrip("\n") + "\n"
    lines = [f"format: {FORMAT}", *(f"{name}: {_field(name, getattr(run, name))}" for name in _FRONT)]
    lines.append(f"definitions: {scalar([definition.digest for definition in kept])}")
    lines.append(f"body: {scalar(_sha(body))}")
    front = "\n".join(lines) + "\n"
    return f"---\n{front}checksum: {scalar(_sha(front))}\n---\n\n{body}"


def plain(data: bytes, damaged: Damaged) -> str:
    """The text of a file, whatever an editor or Git made of its line ends; raises `damaged` when it is no text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise damaged() from None
    return text.replace("\r\n", "\n").rstrip("\n") + "\n"


def front_lines(text: str, damaged: Damaged) -> tuple[list[str], int]:
    """The lines of the front matter, and where the body begins; raises `damaged` unless they are as written."""
    end = text.find("\n---\n", 3)
    seal = text.rfind("\nchecksum: ", 0, end + 1) + 1
    if not text.startswith("---\n") or text[end : end + len(_FRONT_END)] != _FRONT_END or not seal:
        _check_newer(text)
        raise damaged()
    front = text[4:seal]
    _check_newer(text)
    if text[seal : end + 1] != f"checksum: {scalar(_sha(front))}\n":
        raise damaged()
    return front[:-1].split("\n"), end + len(_FRONT_END)


def front_of(text: str, damaged: Damaged) -> tuple[Front, int]:
    """The front matter, and where the body begins; raises `damaged` unless it is as it was written."""
    lines, begin = front_lines(text, damaged)
    with _or(damaged):
        fields = dict(map(_fact, lines))
        definitions, body = tuple(fields.pop("definitions")), str(fields.pop("body"))
        run = msgspec.convert(fields | {"inputs": ""}, Run)
    return Front(run, definitions, body), begin


def birth_of(text: str, damaged: Damaged) -> tuple[float, str]:
    """When the run was made, and its id; raises `damaged` unless the front matter is as it was written."""
    lines, _ = front_lines(text, damaged)
    with _or(damaged):
        fields = dict(_fact(line) for line in lines if line.startswith(("created: ", "run_id: ")))
        return float(fields["created"]), str(fields["run_id"])


def content_of(text: str, damaged: Damaged) -> Written:
    """All of a checkpoint; raises `damaged` unless it is as it was written."""
    front, begin = front_of(text, damaged)
    body = text[begin:]
    if _sha(body) != front.body:
        raise damaged()
    return Written(front, body, damaged)


def _sections(body: str) -> Iterator[_Section]:
    """The headings of a text, each with the facts and the fenced blocks under it."""
    section = _Section("", 0)
    place = 0
    lines = iter(body.split("\n"))
    for line in lines:
        if line[:2] == "- ":
            section.facts.append(line[2:])
        elif line[:3] == "```":
            fence = line[: len(line) - len(line.lstrip("`"))]
            content: list[str] = []
            for inner in lines:
                place += len(inner) + 1
                if inner == fence:
                    break
                content.append(inner)
            section.blocks.append((line, content))
        elif line[:3] == "## " or line[:4] == "### ":
            yield section
            section = _Section(line, place)
        place += len(line) + 1
    yield section


def _definition_section(definition: Definition) -> str:
    facts = _facts(definition, ("digest", "name", "version", "format", "file"))
    source = text_fence(definition.format if definition.format in ("yaml", "toml") else "text", "text", definition.text)
    return f"## Definition\n\n{facts}\n{source}\n{json_fence('canonical', definition.canonical)}\n"


def _facts(noun: Record | Note | Definition, names: Iterable[str]) -> str:
    given = ((name, getattr(noun, name)) for name in names)
    return "".join(f"- {name}: {_field(name, value)}\n" for name, value in given if value is not None)


def _blocks(noun: Record | Note, names: Iterable[str]) -> str:
    given = ((name, getattr(noun, name)) for name in names)
    return "".join(f"\n{json_fence(name, value)}" for name, value in given if value is not None) + "\n"


def _field(name: str, value: Any) -> str:
    return instant(value) if name in _TIMES and value is not None else scalar(value)


def _fact(line: str) -> tuple[str, Any]:
    name, _, value = line.partition(": ")
    return name, scalar_value(value)


def _check_newer(text: str) -> None:
    """A later format may seal its text otherwise: it is told by its first lines alone."""
    for line in text[:400].split("\n")[1:3]:
        name, _, value = line.partition(": ")
        if name == "format" and value.isascii() and value.isdigit() and int(value) > FORMAT:
            raise StoreTooNew(found=int(value), known=FORMAT)


def _sha(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass"))
