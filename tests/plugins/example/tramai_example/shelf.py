"""`shelf:`: a store of files, under a scheme of its own."""

from __future__ import annotations

from tramai.stores.file import File


class Shelf(File):
    """`file:`, with another name on it."""
