"""Read a YAML or TOML file: plain data, and the place of every key and value in it."""

from __future__ import annotations

import os
import re
import sys

import msgspec

from . import _nodes
from ._nodes import Lines, Mapping, Node, Scalar, Sequence
from .errors import ConfigurationError, Pointer, Position, Problem
from .excerpt import excerpt, gutter

__all__ = ["Document", "Mapping", "Node", "Scalar", "Sequence", "excerpt", "gutter", "parse", "read"]

STDIN = "-"
# Controls that neither YAML nor TOML takes, halves of surrogate pairs, byte order marks and non-characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_LOOKS_TOML = re.compile(r"""(?:\s+|#[^\n]*)*(?:\[\[?[\w."' -]+\]\]?\s*(?:\#|$)|[\w."'-]+\s*=)""", re.MULTILINE)


class Document(msgspec.Struct, frozen=True):
    """A file that was read. `root` is None when its problems leave nothing to look at.

    `text` is what places refer to: decoded, without a byte order mark, line ends as they were.
    """

    file: str
    text: str
    format: str
    root: Mapping | None
    problems: tuple[Problem, ...] = ()
    lines: Lines | None = None
    sha256: str | None = None
    """Of the bytes of the file, where somebody has to know whether it is still the same."""
    beside: dict[str, str] = {}
    """Files whose content was taken into what this file says: their paths, and the SHA-256 of their bytes."""

    def node(self, pointer: Pointer) -> Node | None:
        """What stands at a pointer, None when nothing does."""
        node, known = self._nearest(pointer)
        return node if known == len(pointer) else None

    def position(self, pointer: Pointer, *, key: bool = False) -> Position:
        """The place of a value, or of its key. An unknown pointer gives its nearest known ancestor."""
        if key and pointer and (found := self._key(pointer)) is not None:
            return self._lines().position(found.start, found.end)
        node, known = self._nearest(pointer)
        if node is None:
            return self._lines().position(0, 0)
        if known < len(pointer) and known and (found := self._key(pointer[:known])) is not None:
            return self._lines().position(found.start, found.end)
        return self.place(node)

    def place(self, node: Node) -> Position:
        """The place of a node."""
        return self._lines().position(node.start, _end(node, self.text))

    def first_key(self, pointer: Pointer) -> Position:
        """The place of the first key of the mapping at a pointer: where to say that another one is missing."""
        node = self.node(pointer)
        if isinstance(node, Mapping) and node.keys:
            first = next(iter(node.keys.values()))
            return self._lines().position(first.start, first.end)
        return self.position(pointer)

    def inside(self, pointer: Pointer, start: int, end: int) -> Position:
        """The source of the characters [start, end) of the text at a pointer, quotes, escapes and folding undone.

        Falls back to the whole value where that is not clear.
        """
        from ._source import offsets

        node = self.node(pointer)
        if not isinstance(node, Scalar):
            return self.position(pointer)
        text = node.value if isinstance(node.value, str) else node.text
        places = offsets(self.text, node.start, node.end, text, toml=node.style == "toml")
        if places is None:
            return self.position(pointer)
        start = max(0, min(start, len(text)))
        end = max(start, min(end, len(text)))
        # The end stands behind the last character, not before the next: a line end or an escape may lie between.
        stop = places[end] if end == start else max(places[start], places[end - 1]) + 1
        if end > start and end < len(places) and places[end] > stop and "\n" not in self.text[stop : places[end]]:
            stop = places[end]
        return self._lines().position(places[start], stop)

    def _lines(self) -> Lines:
        return self.lines or Lines(self.file, self.text)

    def _key(self, pointer: Pointer) -> Scalar | None:
        above = self.node(pointer[:-1])
        return above.keys.get(str(pointer[-1])) if isinstance(above, Mapping) else None

    def _nearest(self, pointer: Pointer) -> tuple[Node | None, int]:
        node: Node | None = self.root
        for depth, part in enumerate(pointer):
            below: Node | None = None
            if isinstance(node, Mapping):
                below = node.values.get(str(part))
            elif isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
                below = node.items[part]
            if below is None:
                return node, depth
            node = below
        return node, len(pointer)


def _end(node: Node, text: str) -> int:
    """Where a node really ends: parsers put the end of a block behind the blank lines and comments that follow it."""
    if isinstance(node, Scalar):
        if node.style in ("|", ">"):
            return node.start + len(text[node.start : node.end].rstrip())
        return node.end
    while not isinstance(node, Scalar):
        below = list(node.values.values()) if isinstance(node, Mapping) else node.items
        if not below or text[node.end - 1 : node.end] in ("]", "}"):
            return node.end
        if below[-1].start < node.start:  # an alias: what it names stands above
            return max(node.start + 1, node.end)
        node = below[-1]
    return _end(node, text)


def read(path: str) -> Document:
    """The document in a file; `-` is standard input. Raises ConfigurationError when the file cannot be read.

    What is wrong with its content is in `problems`, never an exception.
    """
    limit = _nodes.LARGEST_FILE + 1
    if path == STDIN:
        return parse(sys.stdin.buffer.read(limit), file="<stdin>")
    try:
        with open(path, "rb") as source:
            content = source.read(limit)
    except IsADirectoryError:
        raise ConfigurationError(what=f"{path} is a folder, not a workflow file") from None
    except FileNotFoundError:
        raise ConfigurationError(what=f"no such file: {path}", hint=_meant(path)) from None
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise ConfigurationError(what=f"cannot read {path}: {reason.lower()}") from None
    return parse(content, file=path)


def _meant(path: str) -> str | None:
    """What to do about a path at which there is nothing: the file beside it that is probably meant."""
    import difflib

    folder, name = os.path.split(path)
    try:
        files = [entry for entry in os.listdir(folder or ".") if entry.endswith((".yaml", ".yml", ".toml"))]
    except OSError:
        return f"there is no folder {folder} either"
    near = difflib.get_close_matches(name, files, n=1)
    return f"did you mean {os.path.join(folder, near[0])}?" if near else None


def parse(text: str | bytes, *, file: str, format: str | None = None) -> Document:
    """The document in a text. The format, `yaml` or `toml`, follows from the file's name or from the text itself."""
    if len(text) > _nodes.LARGEST_FILE:
        return _refused(file, "", format or _format(file, ""), "TRM116", "the file is larger than 1 MiB", 0, _SMALLER)
    if isinstance(text, bytes):
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            shown = text.decode("utf-8", "replace")
            before = len(text[: error.start].decode("utf-8"))
            message = f"byte 0x{text[error.start]:02X} is not UTF-8"
            return _refused(
                file, shown, format or _format(file, ""), "TRM110", message, before, "save the file as UTF-8"
            )
    else:
        decoded = text
    decoded = decoded.removeprefix("\ufeff")
    format = format or _format(file, decoded)
    if found := _FORBIDDEN.search(decoded):
        code = ord(found[0])
        what = "U+FEFF (a byte order mark)" if code == 0xFEFF else f"U+{code:04X}"
        hint = (
            "remove it"
            if code == 0xFEFF or 0xD800 <= code <= 0xDFFF
            else f'remove it, or write it as "\\u{code:04X}" in double quotes'
        )
        return _refused(file, decoded, format, "TRM110", f"the character {what} cannot stand here", found.start(), hint)
    return _read(decoded, file, format)


_SMALLER = "move prompts and data to files of their own"


def _read(text: str, file: str, format: str) -> Document:
    lines = Lines(file, text)
    if format == "toml":
        from . import _toml as reader
    else:
        from . import _yaml as reader  # type: ignore[no-redef]
    root, problems = reader.read(text, lines)
    problems.sort(key=lambda problem: problem.sort_key())
    return Document(file, text, format, root, tuple(problems), lines)


def _format(file: str, text: str) -> str:
    if file.lower().endswith(".toml"):
        return "toml"
    if file.lower().endswith((".yaml", ".yml", ".json")):
        return "yaml"
    return "toml" if _LOOKS_TOML.match(text) else "yaml"


def _refused(file: str, text: str, format: str, code: str, message: str, offset: int, hint: str) -> Document:
    lines = Lines(file, text)
    problem = lines.problem(code, message, offset, offset + 1, hint=hint)
    return Document(file, text, format, None, (problem,), lines)
