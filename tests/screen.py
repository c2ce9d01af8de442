"""A terminal as small as tests need one: what stands on it after a program has written, and what it was told to do."""

from __future__ import annotations

import re

from tramai.cli._terminal import cells

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b(.)|[\r\n]|[^\x1b\r\n]", re.DOTALL)


class Screen:
    """Lines that break at `columns`, of which the last `rows` can be reached by the cursor."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.lines: list[list[str]] = [[]]
        """The cells of each; the second one of a wide character is empty."""
        self.row = 0
        self.column = 0
        self.modes: list[str] = []
        """Sequences that change more than what is shown."""
        self.highest = 0
        """The most rows that the cursor went up at once."""

    def feed(self, text: str) -> Screen:
        """Take what a program wrote."""
        for token in _TOKEN.finditer(text):
            if token[2] is not None:
                self._obey(token[1], token[2])
            elif token[3] is not None:
                self.modes.append(token[0])
            elif token[0] == "\r":
                self.column = 0
            elif token[0] == "\n":
                self._down()
            else:
                self._put(token[0])
        return self

    def shown(self) -> list[str]:
        """The lines from the first to the last that is not empty."""
        lines = ["".join(line).rstrip() for line in self.lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _obey(self, number: str, letter: str) -> None:
        if letter == "A":
            count = int(number or 1)
            self.highest = max(self.highest, count)
            self.row = max(self.row - count, len(self.lines) - self.rows, 0)
        elif letter == "J" and not number:
            del self.lines[self.row][self.column :]
            for line in self.lines[self.row + 1 :]:  # wiped, not taken away
                line.clear()
        elif letter != "m":
            self.modes.append(f"\x1b[{number}{letter}")

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def _put(self, character: str) -> None:
        wide, line = cells(character), self.lines[self.row]
        if not wide:
            line[self.column - 1 : self.column] = ["".join(line[self.column - 1 : self.column]) + character]
            return
        if self.column + wide > self.columns:
            self._down()
            self.column, line = 0, self.lines[self.row]
        line += [" "] * (self.column - len(line))
        line[self.column : self.column + wide] = [character, *[""] * (wide - 1)]
        self.column += wide
