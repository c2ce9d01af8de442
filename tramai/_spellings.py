"""How a secret may be spelled in what others print: plain, and as JSON, URLs, shells, HTML, base64 and hex have it."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

_SAFE = ("", "/", "!$&'()*+,;=:@/", "!$&'()*+,;=:@/?", "!*'()", "!#$&'()*+,/:;=?@")
"""What the quoting of URLs leaves as it is: everything, parts of paths, paths, queries, and JavaScript's two ways."""
_TELLING = 8
"""Characters of hex or base64 that are found elsewhere by chance only once in many millions."""
_HTML = ({"<": "&lt;", ">": "&gt;"}, {'"': "&quot;", "'": "&#x27;"}, {'"': "&#34;", "'": "&#39;"})


def of(values: Iterable[str], shortest: int) -> tuple[str, ...]:
    """Every spelling of every value and of each of its lines, the longest first; none has less characters than that."""
    found: set[str] = set()
    for part in {part for value in values for part in (value, *(line.strip() for line in value.splitlines()))}:
        if len(part) >= shortest:
            plain = {part, *_urls(part), *_shells(part), *_markup(part)}
            plain.update(one for one in _bytes(part) if len(one) >= _TELLING)
            found |= plain
            found.update(spelled for text in plain for spelled in _json(text))
    return tuple(sorted((text for text in found if len(text) >= shortest), key=lambda text: (-len(text), text)))


def _json(text: str) -> Iterator[str]:
    """As encoders write it that escape all but ASCII, as little as they must, the slash, or what HTML would read."""
    if text.isascii() and text.isalnum():
        return
    ascii_only, whole = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    yield from (ascii_only, whole, ascii_only.replace("/", "\\/"))
    for spelled in (ascii_only, whole):
        for risky in ("[<>&]", "\\\\\"|[<>&'+]"):
            escaped = re.sub(risky, lambda found: f"\\u{ord(found[0][-1]):04x}", spelled)
            yield escaped
            yield re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), escaped)
    again = json.dumps(ascii_only)[1:-1]  # JSON inside a text inside JSON
    if again != ascii_only:
        yield again


def _urls(text: str) -> Iterator[str]:
    for safe in _SAFE:
        for spelled in (quote(text, safe=safe, errors="replace"), quote_plus(text, safe=safe, errors="replace")):
            yield spelled
            yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), spelled)


def _shells(text: str) -> Iterator[str]:
    """Inside single quotes (two ways out of them), inside double quotes, with backslashes, and as `$'…'`."""
    yield text.replace("'", "'\"'\"'")
    yield text.replace("'", "'\\''")
    yield re.sub(r'([$`"\\])', r"\\\1", text)
    yield re.sub(r"([^\w@%+=:,./\n-])", r"\\\1", text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    yield escaped.replace("\r", "\\r")
    octal = "".join(chr(byte) if byte < 128 else f"\\{byte:o}" for byte in _encoded(escaped))
    yield octal.replace("\r", "\\r")
    yield repr(text)[1:-1]


def _markup(text: str) -> Iterator[str]:
    first, *quotes = _HTML
    bare = _replaced(text.replace("&", "&amp;"), first)
    yield bare
    for more in quotes:
        yield _replaced(bare, more)


def _replaced(text: str, by: dict[str, str]) -> str:
    for old, new in by.items():
        text = text.replace(old, new)
    return text


def _bytes(text: str) -> Iterator[str]:
    """Hex, and base64 wherever among other bytes the value stands: what of it depends on the value alone."""
    data = _encoded(text)
    yield data.hex()
    yield data.hex().upper()
    whole = _base64(data)
    found = {whole, whole.rstrip("=")}
    for before in range(3):
        first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        found.add(_base64(bytes(before) + data)[first:end])
    for spelled in found:
        yield spelled
        yield spelled.replace("+", "-").replace("/", "_")


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
