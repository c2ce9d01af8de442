"""What an extra of the package brings: asked for where tests are collected, loaded before the first one is run.

To load it takes seconds, and of several workers that collect tests few come to run these.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest


def needs(extra: str, *modules: str) -> tuple[str, ...]:
    """What `loaded` loads: a file says `EXTRA = needs(…)`, and is skipped where that is not installed."""
    if any(find_spec(module) is None for module in modules):
        pytest.skip(f"the extra is not installed: pip install 'tramai[{extra}]'", allow_module_level=True)
    return modules


@pytest.fixture(scope="module", autouse=True)
def loaded(request: pytest.FixtureRequest) -> None:
    """No test has the time of an import in its own; imported into the files that want it."""
    for module in request.module.EXTRA:
        import_module(module)
