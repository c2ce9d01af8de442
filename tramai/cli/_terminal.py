"""What a terminal can show, and text made safe for it: colour, glyphs, width, no control characters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TextIO

COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}

# What a reader must never be told by somebody else's text: C0 and C1 controls, the direction marks that reorder a
# line (Trojan Source, CVE-2021-42574), invisible line ends, and half characters that no encoding can write.
_UNSAFE = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF)},
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
    ord("\t"): "    ",
}


def safe(text: str) -> str:
    """One line of somebody else's text: control characters are spelled out, workflow commands of a CI are broken."""
    if not (text.isascii() and text.isprintable()):
        text = text.translate(_UNSAFE)
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if "::" in text and text.lstrip().startswith("::"):
        text = text.replace("::", "\\::", 1)
    return _broken(text) if "##" in text else text


def _broken(text: str) -> str:
    """Without commands that a CI finds anywhere in a line: `##[…]`, `##vso[…]`, `##teamcity[…]`."""
    import re

    return re.sub(r"##(?=[\w.-]*\[)", r"#\\#", text)


def safe_lines(text: str) -> list[str]:
    """The lines of somebody else's text, each made safe; `\\r\\n` and a lone `\\r` end a line too."""
    return [safe(line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def cells(text: str) -> int:
    """How many columns a text takes: two for wide characters, none for marks that sit on another character."""
    if text.isascii():
        return len(text)
    import unicodedata

    width = 0
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me", "Cf") and character != "\ufe0f":
            continue  # but the sign that makes a picture of a character also makes it wide
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """The text, cut with an ellipsis so that it takes at most `width` columns."""
    if cells(text) <= width:
        return text
    room, kept = max(width - len(ellipsis), 0), ""
    for character in text:
        room -= cells(character)
        if room < 0:
            break
        kept += character
    return (kept + ellipsis)[: max(width, 0)] if width < len(ellipsis) else kept + ellipsis


def pad(text: str, width: int) -> str:
    """The text, followed by blanks up to `width` columns."""
    return text + " " * max(width - cells(text), 0)


class Terminal:
    """One output stream and what may be written to it.

    `colour`: `auto`, `always` or `never`. A write after the reader went away is dropped: what is shown never decides
    what is done. `broken` says that it happened, and `failure` why, unless it was the reader who left. `typed`
    puts into commands that are shown what they need to be typed as they are.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: str = "auto",
        env: Mapping[str, str] = os.environ,
        typed: Callable[[str], str] = str,
    ) -> None:
        self.stream = stream
        self.broken = False
        self.failure: str | None = None
        self.tty = _is_tty(stream)
        self.unicode = _speaks_unicode(stream)
        self.coloured = _wants_colour(colour, self.tty, env)
        self.redraws = self.tty and env.get("TERM", "") != "dumb"
        """Whether lines can be redrawn at all."""
        self.lively = self.redraws and not env.get("CI")
        """Whether they should be, when nobody says."""
        self.typed = typed
        self._env = env

    @property
    def width(self) -> int:
        """Columns of a line; it may change while we look."""
        return _columns(self.stream, self._env) if self.tty else 120

    @property
    def ellipsis(self) -> str:
        """What stands for text that was cut."""
        return "…" if self.unicode else "..."

    def paint(self, text: str, *colours: str) -> str:
        """The text in colours, where the terminal has them."""
        if not self.coloured or not colours or not text:
            return text
        return f"\x1b[{';'.join(COLOURS[colour] for colour in colours)}m{text}\x1b[0m"

    def line(self, text: str = "") -> None:
        """Write one line at once."""
        self.write(text + "\n")

    def write(self, text: str) -> None:
        """Write text at once, or drop it when nobody reads any more."""
        if self.broken:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except UnicodeEncodeError:
            encoding = getattr(self.stream, "encoding", None) or "ascii"
            self.write(text.encode(encoding, "backslashreplace").decode(encoding))
        except (OSError, ValueError) as error:
            self.broken = True
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                self.failure = error.strerror
            silence(self.stream)


def silence(stream: TextIO) -> None:
    """Point a broken stream at nothing, so that the interpreter's last flush does not complain."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
    except (OSError, ValueError, AttributeError):
        pass


def _is_tty(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def _speaks_unicode(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")


def _wants_colour(choice: str, tty: bool, env: Mapping[str, str]) -> bool:
    if choice != "auto":
        return choice == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") != "0" or env.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return tty and env.get("TERM", "") != "dumb" and env.get("CLICOLOR") != "0"


def _columns(stream: TextIO, env: Mapping[str, str]) -> int:
    if env.get("COLUMNS", "").isdigit():
        return max(int(env["COLUMNS"]), 20)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns, 20)
    except (OSError, ValueError):
        return 80
