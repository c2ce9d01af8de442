"""Workflow files rewritten without a change of meaning: put into canonical form, or into the other format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from .. import plan, workflow
from ..document import Document, parse
from ..errors import InvalidDefinition, Position
from . import _same

__all__ = ["Converted", "Formatted", "Lost", "Unwritable", "convert_document", "format_document", "pair"]


class Unwritable(Exception):
    """A file that cannot be written anew without a doubt; the words say why. It stays as it is."""

    def __init__(self, why: str, position: Position | None = None) -> None:
        self.position = position
        super().__init__(why)


class Lost(msgspec.Struct, frozen=True):
    """A comment that has no place in the other format."""

    line: int
    text: str


class Converted(msgspec.Struct, frozen=True):
    """A workflow in the other format. `lost`: comments that have no place there."""

    text: str
    digest: str
    lost: tuple[Lost, ...]


class Formatted(msgspec.Struct, frozen=True):
    """A text in canonical form. `note`: why its keys could not be put in order."""

    text: str
    note: str | None = None


def format_document(source: Document) -> Formatted:
    """The text of a workflow file in canonical form, with the line ends it has.

    Before it is given away, it was read again: it has the same digest and the same data, its own notes (`x-…`)
    included, every comment, and no other canonical form. Raises InvalidDefinition for a file with errors, and
    Unwritable.
    """
    loaded, problems = workflow.examine(source)
    if loaded is None:
        raise InvalidDefinition(problems, file=source.file)
    crlf = source.text.find("\n") > 0 and source.text[source.text.find("\n") - 1] == "\r"
    unix = _parsed(source.text.replace("\r\n", "\n").replace("\r", "\n"), source)
    digest = plan.of(loaded).digest
    why = "the result would not mean the same"
    for reorder in (True, False):
        try:
            text = _formatted(unix, reorder=reorder)
        except Unwritable as error:
            why = str(error)
            continue
        result = _parsed(text, source)
        if _is_the_same(unix, result, digest) and _settled(result, reorder=reorder):
            note = None if reorder else "its keys stay in their order, which its anchors need"
            return Formatted(text.replace("\n", "\r\n") if crlf else text, note)
    raise Unwritable(why)


def convert_document(source: Document, to: str) -> Converted:
    """The same workflow as `toml` or `yaml`, with `\\n` as line ends.

    Before it is given away, it was read again: it has the same digest and the same data. Raises InvalidDefinition for
    a file with errors, and Unwritable.
    """
    from . import _convert

    loaded, problems = workflow.examine(source)
    if loaded is None:
        raise InvalidDefinition(problems, file=source.file)
    unix = _parsed(source.text.replace("\r\n", "\n").replace("\r", "\n"), source)
    try:
        text = _convert.write(unix, to)
    except _convert.HasNull as error:
        raise Unwritable(str(error), source.position(error.pointer)) from None
    result = parse(text, file=source.file, format=to)
    digest = plan.of(loaded).digest
    made, _ = workflow.examine(result)
    if made is None or plan.of(made).digest != digest or _convert.data(result) != _convert.data(unix):
        raise Unwritable("the result would not mean the same")
    return Converted(text, digest, tuple(_lost(unix, result)))


def pair(key: str, value: Any, *, width: int = 80) -> list[str]:
    """A key and its value as lines of YAML, for people: one line if it fits."""
    from . import _yaml_write

    whole = _yaml_write.pairs({key: value}, 0)
    short = f"{key}: {_yaml_write.flow(value)}"
    return [short] if isinstance(value, (dict, list)) and len(short) <= width else whole


def _lost(old: Document, new: Document) -> Iterator[Lost]:
    from ._convert import modeline

    left = Counter(_every_comment(new).elements())
    for comment in _every_comment(old).elements():
        spelled = modeline(comment, new.format)
        if left[spelled]:
            left[spelled] -= 1
        else:
            offset = old.text.rfind(comment)
            yield Lost(old.lines.place(offset)[0] if old.lines else 1, comment)


def _every_comment(source: Document) -> Counter[str]:
    from ._convert import remarks

    found: Counter[str] = Counter()
    for one in remarks(source).values():
        found.update(filter(None, [*one.before, one.beside or "", *one.tail]))
    return found


def _parsed(text: str, source: Document) -> Document:
    return parse(text, file=source.file, format=source.format)


def _formatted(source: Document, *, reorder: bool) -> str:
    if source.format == "toml":
        from ._toml import format_toml

        return format_toml(source, reorder=reorder)
    from ._yaml import CannotFormat, format_yaml

    try:
        return format_yaml(source, reorder=reorder)
    except CannotFormat as error:
        raise Unwritable(str(error)) from None


def _is_the_same(old: Document, new: Document, digest: str) -> bool:
    if old.root is None or new.root is None or _same.plain(old.root) != _same.plain(new.root):
        return False
    if Counter(_remarks_of(old)) != Counter(_remarks_of(new)):
        return False
    loaded, _ = workflow.examine(new)
    return loaded is not None and plan.of(loaded).digest == digest


def _settled(source: Document, *, reorder: bool) -> bool:
    """Whether the canonical form of a text is the text."""
    try:
        return _formatted(source, reorder=reorder) == source.text
    except Unwritable:
        return False


def _remarks_of(source: Document) -> list[str]:
    if source.format == "toml":
        from ._toml import comments

        return comments(source)
    from ._yaml import comments as of_yaml

    return of_yaml(source)
