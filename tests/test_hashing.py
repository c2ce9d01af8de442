"""One digest, whichever code computes it, and without loading a library for small data."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from tramai import hashing

SIZES = (0, 1, 63, 64, 65, 4096, hashing.LARGE - 1, hashing.LARGE, hashing.LARGE + 1)


@pytest.mark.parametrize("size", SIZES)
def test_small_and_large_data_have_the_digest_of_the_standard(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    assert hashing.sha256(data) == hashlib.sha256(data).hexdigest()


def test_a_build_without_its_own_code_uses_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_sha2", "_sha256"):
        monkeypatch.setitem(sys.modules, name, None)
    assert hashing._built_in() is hashlib.sha256


def test_small_data_loads_no_library() -> None:
    code = "import sys; from tramai.hashing import sha256; sha256(b'x'); sys.exit('_hashlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
