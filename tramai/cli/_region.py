"""A few lines at the bottom of a terminal that are drawn again and again; nothing of it is left when it goes.

The cursor stands below them, is never hidden, and no mode of the terminal is changed: whatever kills us leaves a
terminal that works, and a prompt on a line of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ._terminal import Terminal, cells

MOST = 12
"""Lines."""
NARROWEST = 16
"""Columns below which there is no room for anything."""
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


class Region:
    """Lines that can be replaced. Whoever calls sees to it that two never draw at once."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._drawn: tuple[str, ...] = ()

    def room(self) -> tuple[int, int]:
        """Columns of a line and number of lines that there is room for now; nothing where the terminal is too small."""
        columns, lines = self._size()
        if columns < NARROWEST:
            return 0, 0
        return columns - 1, max(min(MOST, lines - 2), 0)  # the last column would break the line on some

    def draw(self, lines: Sequence[str], above: Sequence[str] = ()) -> None:
        """Replace the lines; those `above` stay. All in one write, so that nobody sees it half done."""
        lines = tuple(lines)
        if lines == self._drawn and not above:
            return
        back = self._back()
        self._drawn = lines
        self._terminal.write(back + "".join(f"{line}\n" for line in (*above, *lines)))

    def lose(self) -> None:
        """Somebody else has written meanwhile: what was drawn stays where it is."""
        self._drawn = ()

    def _back(self) -> str:
        """To the first of the lines, and all from there wiped away.

        Lines break anew when a terminal becomes narrower.
        """
        if not self._drawn:
            return ""
        columns, height = self._size()
        rows = sum(max(-(-cells(_COLOUR.sub("", line)) // columns), 1) for line in self._drawn)
        return f"\x1b[{min(rows, height - 1)}A\r\x1b[J" if height > 1 else "\r\x1b[J"

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._terminal.stream.fileno())
            return max(size.columns, 1), max(size.lines, 1)
        except (OSError, ValueError):
            return 80, 24
