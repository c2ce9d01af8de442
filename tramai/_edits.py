"""A JSON Patch as edits of the text of a file: only what changes is touched, comments and all else stay."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ._nodes import Mapping, Node, Scalar
from ._source import offsets
from .document import Document
from .errors import Pointer
from .formatting import _scalars, _toml_write, _yaml_write

Operation = dict[str, object]
_LONGEST = 20_000
"""Characters of a text in which single changes are looked for."""


class Edit(msgspec.Struct, frozen=True):
    """Characters [start, end) of a document's text become `text`."""

    start: int
    end: int
    text: str
    document: Document

    def range(self) -> tuple[int, int, int, int]:
        """Line and column of both ends, counted from 1."""
        lines = self.document.lines
        assert lines is not None
        return *lines.place(self.start), *lines.place(self.end)


class CannotEdit(Exception):
    """An operation that has no edit: what it is about is not written there, as behind an alias."""


def _parts(path: str) -> tuple[str, ...]:
    """The parts of RFC 6901 text."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def resolved(document: Document, path: str) -> Pointer:
    """The pointer of a JSON path in this document, with numbers where there are lists."""
    node: Node | None = document.root
    found: list[str | int] = []
    for part in _parts(path):
        if isinstance(node, Mapping):
            found.append(part)
            node = node.values.get(part)
        elif node is not None and not isinstance(node, Scalar) and part.isdigit():
            found.append(int(part))
            node = node.items[int(part)] if int(part) < len(node.items) else None
        else:
            found.append(part)
            node = None
    return tuple(found)


def ways(document: Document, patch: Sequence[Operation]) -> Iterator[list[Edit]]:
    """The edits that may do what a patch says, the least first. Whoever applies them checks what they did."""
    for operate in (_smallest, _whole):
        made: list[Edit] = []
        try:
            for operation in patch:
                made += operate(document, operation)
        except CannotEdit:
            continue
        if not overlapping(made):
            yield [_with_line_ends(edit) for edit in made]


def _with_line_ends(edit: Edit) -> Edit:
    """The edit with the line ends of its file."""
    if "\n" not in edit.text or "\r\n" not in edit.document.text:
        return edit
    return msgspec.structs.replace(edit, text=edit.text.replace("\r\n", "\n").replace("\n", "\r\n"))


def overlapping(edits: Sequence[Edit]) -> bool:
    """Whether two edits touch the same characters."""
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    return any(
        later.start < earlier.end or (later.start, later.end) == (earlier.start, earlier.end)
        for earlier, later in itertools.pairwise(ordered)
    )


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text with the edits made."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _smallest(document: Document, operation: Operation) -> list[Edit]:
    return _edit(document, operation, _changed)


def _whole(document: Document, operation: Operation) -> list[Edit]:
    return _edit(document, operation, _replaced)


Replace = Callable[[Document, Pointer, Any], list[Edit]]


def _edit(document: Document, operation: Operation, replace: Replace) -> list[Edit]:
    at = resolved(document, str(operation["path"]))
    if operation["op"] == "move":
        return _renamed(document, resolved(document, str(operation["from"])), at)
    if operation["op"] == "replace":
        return replace(document, at, operation["value"])
    if operation["op"] == "add":
        return _added(document, at, operation["value"])
    raise CannotEdit


def _renamed(document: Document, old: Pointer, new: Pointer) -> list[Edit]:
    """A key written differently. Its value stays where it is."""
    above = document.node(old[:-1])
    if old[:-1] != new[:-1] or not isinstance(above, Mapping) or str(old[-1]) not in above.keys:
        raise CannotEdit
    key = above.keys[str(old[-1])]
    if document.format == "toml":
        return [Edit(key.start, key.end, _scalars.toml_key(str(new[-1])), document)]
    written = document.text[key.start : key.end]
    quote = written[:1] if written[:1] in "\"'" and document.format == "yaml" else ""
    return [
        Edit(key.start, key.end, f"{quote}{new[-1]}{quote}" if quote else _scalars.yaml_key(str(new[-1])), document)
    ]


def _changed(document: Document, at: Pointer, value: Any) -> list[Edit]:
    """Only the characters of a text that differ."""
    node = document.node(at)
    if not isinstance(node, Scalar) or not isinstance(value, str):
        raise CannotEdit
    old = node.value if isinstance(node.value, str) else node.text
    if len(old) > _LONGEST or ("\n" not in old and len(old) < 8):
        raise CannotEdit
    places = offsets(document.text, node.start, node.end, old, toml=node.style == "toml")
    if places is None:
        raise CannotEdit
    edits = []
    for kind, start, end, low, high in difflib.SequenceMatcher(None, old, value, autojunk=False).get_opcodes():
        if kind != "equal":
            stop = places[start] if end == start else places[end - 1] + 1
            edits.append(Edit(places[start], stop, value[low:high], document))
    return edits


def _replaced(document: Document, at: Pointer, value: Any) -> list[Edit]:
    """The whole value."""
    node = document.node(at)
    if node is None or not at or isinstance(node, Mapping):
        raise CannotEdit
    if document.format == "toml":
        return [Edit(node.start, _end(document, node), _toml_write.inline(value), document)]
    if isinstance(value, (dict, str)) and not _in_flow(document, at) and not isinstance(at[-1], int):
        return [_block(document, at, node, value)]
    return [Edit(node.start, _end(document, node), _yaml_value(document, at, node, value), document)]


def _yaml_value(document: Document, at: Pointer, node: Node, value: Any) -> str:
    if not isinstance(value, str):
        return _yaml_write.flow(value)
    style = node.style if isinstance(node, Scalar) else ""
    if style == "'" or (style == "" and not _scalars.is_plain(value, flow=_in_flow(document, at))):
        return _scalars.quoted(value)
    return value if style == "" else _scalars.quoted(value)


def _block(document: Document, at: Pointer, node: Node, value: Any) -> Edit:
    """A text or a mapping behind its key, in as many lines as it needs."""
    above = document.node(at[:-1])
    if not isinstance(above, Mapping):
        raise CannotEdit
    if isinstance(value, str) and "\n" not in value:
        return Edit(node.start, _end(document, node), _yaml_value(document, at, node, value), document)
    key = above.keys[str(at[-1])]
    _, column = _lines(document).place(key.start)
    first, *rest = _yaml_write.block(value, column - 1)
    start = node.start
    if not first:  # nothing stands behind the colon
        start = key.end + document.text[key.end : node.start].index(":") + 1
    return Edit(start, _end(document, node), "\n".join([first, *rest]), document)


def _added(document: Document, at: Pointer, value: Any) -> list[Edit]:
    """One more key, behind the others of its mapping."""
    above, key = document.node(at[:-1]), str(at[-1])
    if not isinstance(above, Mapping) or not at or key in above.values:
        raise CannotEdit
    toml = document.format == "toml"
    text = document.text
    if text.startswith("{", above.start):
        end = _end(document, above) - 1
        while text[end - 1] in " \t\r\n":
            end -= 1
        pair = f"{_scalars.toml_key(key)} = {_toml_write.inline(value)}"
        pair = pair if toml else f"{_scalars.yaml_key(key)}: {_yaml_write.flow(value)}"
        return [Edit(end, end, f", {pair}" if above.keys else pair, document)]
    if not above.keys:
        raise CannotEdit
    if toml:
        return [_toml_line(document, above, key, value)]
    first = next(iter(above.keys.values()))
    _, column = _lines(document).place(first.start)
    made = _yaml_write.pairs({key: value}, column - 1)
    return [_line_after(document, document.place(above).end_line, "\n".join(made))]


def _toml_line(document: Document, above: Mapping, key: str, value: Any) -> Edit:
    """A pair behind the last pair of a table that has no table of its own."""
    last: Scalar | None = None
    for name, node in above.values.items():
        if isinstance(node, Scalar) or document.text[node.start : node.start + 1] in ("{", "["):
            before = document.text[: above.keys[name].start].rpartition("\n")[2]
            if not before.strip():
                last = above.keys[name]
                line = document.place(node).end_line
    if last is None:
        raise CannotEdit
    return _line_after(document, line, f"{_scalars.toml_key(key)} = {_toml_write.inline(value)}")


def _line_after(document: Document, line: int, new: str) -> Edit:
    starts = _lines(document).starts()
    ending = "\r\n" if "\r\n" in document.text else "\n"
    if line < len(starts):
        return Edit(starts[line], starts[line], new + ending, document)
    return Edit(len(document.text), len(document.text), ending + new, document)


def _in_flow(document: Document, at: Pointer) -> bool:
    """Whether a place is inside braces or brackets."""
    around = (document.node(at[:depth]) for depth in range(len(at)))
    return any(
        node is not None and not isinstance(node, Scalar) and document.text[node.start : node.start + 1] in ("{", "[")
        for node in around
    )


def _end(document: Document, node: Node) -> int:
    """The offset at which a node really ends."""
    at = document.place(node)
    return int(_lines(document).starts()[at.end_line - 1]) + at.end_column - 1


def _lines(document: Document) -> Any:
    assert document.lines is not None
    return document.lines
