"""How a state looks: a glyph, a word and a colour, so that none of the three is needed alone."""

from __future__ import annotations

from ._terminal import Terminal

_STATES = {
    "ready": ("○", "o", "ready", "dim"),
    "running": ("▸", ">", "running", "cyan"),
    "sleeping": ("⏸", "||", "sleeping", "yellow"),
    "waiting": ("⏸", "||", "waiting", "yellow"),
    "blocked": ("⚠", "!", "blocked", "yellow"),
    "completed": ("✓", "ok", "completed", "green"),
    "failed": ("✗", "x", "failed", "red"),
    "cancelled": ("⊘", "/", "cancelled", "yellow"),
    "dead": ("✗", "x", "dead", "red"),
    "interrupted": ("⏸", "||", "interrupted", "yellow"),
    "arriving": ("→", "->", "arriving", "yellow"),
    "moved": ("→", "->", "moved", "dim"),
    "removed": ("-", "-", "removed", "dim"),
    "started": ("▸", ">", "started", "cyan"),
    "succeeded": ("✓", "ok", "succeeded", "green"),
    "skipped": ("-", "-", "skipped", "dim"),
    "recovered": ("✓", "ok", "recovered", "yellow"),
    "replayed": ("=", "=", "replayed", "dim"),
    "retrying": ("↻", "~", "retrying", "yellow"),
    "unknown": ("?", "?", "unknown", "yellow"),
}


def sign(terminal: Terminal, state: str) -> str:
    """The sign of a state, as it is."""
    return _STATES.get(state, ("·", "."))[0 if terminal.unicode else 1]


def glyph(terminal: Terminal, state: str) -> str:
    """The sign of a state, coloured; two columns wide where the terminal has no Unicode, else one."""
    sign, ascii_sign, _, colour = _STATES.get(state, ("·", ".", state, "dim"))
    shown = sign if terminal.unicode else ascii_sign.ljust(2)
    return terminal.paint(shown, colour)


def word(terminal: Terminal, state: str, width: int = 0) -> str:
    """The word of a state, coloured and padded."""
    return terminal.paint(state.ljust(width), _STATES.get(state, ("", "", "", "dim"))[3])
