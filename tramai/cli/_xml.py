"""Texts in XML reports: what XML cannot hold is spelled out, what a log would obey or show otherwise is a reference."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

_UNSAID = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CODES = (0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_REFERENCES = {**{chr(code): f"&#{code};" for code in _CODES}, "##": "#&#35;", "::": ":&#58;", "\t": "&#9;"}
"""Characters that reorder a line, and what a CI finds commands by: a reader of the XML gets them as they were."""


def attribute(text: str) -> str:
    """The text as the value of an attribute, in its quotes."""
    return quoteattr(_clean(text), {"\n": "&#10;", **_REFERENCES})


def content(text: str) -> str:
    """The text between two tags."""
    return escape(_clean(text), _REFERENCES)


def _clean(text: str) -> str:
    return _UNSAID.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
