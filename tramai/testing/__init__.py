"""What authors of steps, stores and workflows test with: a clock that stands still, contracts, workflows with stubs."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clock import FakeClock
    from .ran import Ran
    from .workflow_test import WorkflowTest

__all__ = ["FakeClock", "Ran", "WorkflowTest"]

_HOMES = {"FakeClock": "clock", "Ran": "ran", "WorkflowTest": "workflow_test"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: pytest loads this package for everybody who has tramai."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tramai.testing' has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return found
