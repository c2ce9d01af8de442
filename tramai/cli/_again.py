"""Commands that people are told to type: with the folder and the store that the flags of this one have named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._session import Session

_VERBS = (
    "approve|cancel|diff|export|graph|list|logs|reject|rerun|resolve|resume|schedule|show|status|store|watch|worker"
)
"""Those that look into a store."""


def typed(session: Session, text: str) -> str:
    """A text of ours in which every command finds the same runs as this one. A password in the URL stays hidden."""
    folder, url = session.flags.get("directory"), session.flags.get("store")
    if not folder and not url:
        return text
    import re
    import shlex

    from ..stores import shown

    words = [*(["-C", folder] if folder else []), *(["--store", shown(url)] if url else [])]
    return re.sub(
        rf"(?m)(?<![^\s(:])tramai (?=(?:{_VERBS})\b)(?!.* --store )", lambda _: f"tramai {shlex.join(words)} ", text
    )
