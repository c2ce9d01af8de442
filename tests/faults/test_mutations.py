"""The list of guards is true: each stands where the list says, and two of them are taken away to see a test go red."""

from __future__ import annotations

import pytest

from .guards import MUTATIONS, Mutation
from .mutations import changed, tried
from .support import ROOT

QUICK = ("sqlite: the end of the lease of a commit", "file, markdown: a new file is nobody else's (O_EXCL)")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.guard for mutation in MUTATIONS])
def test_every_guard_stands_where_the_list_says(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text()
    assert changed(mutation, text) != text


@pytest.mark.parametrize("guard", QUICK)
def test_without_a_guard_a_test_goes_red(guard: str) -> None:
    assert tried(next(mutation for mutation in MUTATIONS if mutation.guard == guard)).red is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.guard for mutation in MUTATIONS])
def test_without_any_guard_a_test_goes_red(mutation: Mutation) -> None:
    assert tried(mutation).red is not None
