"""A system that shows nothing of its processes: descriptors are found all the same."""

from __future__ import annotations

import os

import pytest

from tramai.steps import _watchdog


def test_descriptors_that_children_would_inherit_are_found_without_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(folder: str) -> list[str]:
        raise FileNotFoundError(2, "No such file or directory", folder)

    left_open, ours = os.pipe()
    try:
        os.set_inheritable(left_open, True)
        with monkeypatch.context() as patch:
            patch.setattr(os, "listdir", missing)
            found = _watchdog.open_to_children()
    finally:
        os.close(left_open)
        os.close(ours)
    assert left_open in found
    assert ours not in found
