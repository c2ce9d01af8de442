"""Who is at the keyboard, for the event list of a run."""

from __future__ import annotations


def me() -> str:
    """The user's name, empty when the system does not know it."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
