"""Make `help.txt`, which `tramai --help` prints without importing click: `python -m tramai.cli._helptext`."""

from __future__ import annotations

import os

from ._group import group

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "help.txt")


def text() -> str:
    """What click prints for `tramai --help`."""
    return group.get_help(group.make_context("tramai", [], resilient_parsing=True)) + "\n"


if __name__ == "__main__":
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(text())
