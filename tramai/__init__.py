"""Durable workflows written as YAML or TOML files.

The four words of everyday use are here; each lives in the module that its line names, imported when it is asked for.
"""

TYPE_CHECKING = False  # `typing` would cost every start more than all the rest of this module
if TYPE_CHECKING:
    from .engine import resume
    from .everyday import run
    from .plan import load
    from .stores import open_store

__version__ = "0.1.0"
__all__ = ["__version__", "load", "open_store", "resume", "run"]

_HOMES = {"load": "plan", "run": "everyday", "resume": "engine", "open_store": "stores"}


if not TYPE_CHECKING:  # a checker of types sees the names above, and no others

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for: the command line starts without any of them."""
        if name not in _HOMES:
            raise AttributeError(f"module 'tramai' has no attribute {name!r}")
        from importlib import import_module

        found: object = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        return found
