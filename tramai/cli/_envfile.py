"""`--env-file`: variables for secrets and the environment, one `NAME=value` a line."""

from __future__ import annotations

from ..errors import ConfigurationError

_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def read(path: str) -> dict[str, str]:
    """The variables of a file: `NAME=value`, `export NAME=value`, quotes, `#` comments; nothing is expanded."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigurationError(what=f"the env file {path} cannot be read: {reason}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.removeprefix("export ").partition("=")
        if not equals or not name.strip().isidentifier():
            # The line may hold a secret, so it is named by its number and has no position: an excerpt would show it.
            raise ConfigurationError(what=f"{path}:{number} is not NAME=value", hint="write NAME=value, or # before it")
        found[name.strip()] = _unquote(value.strip())
    return found


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if len(value) >= 2 and value[0] == value[-1] == '"':
        import re

        return re.sub(r'\\[nt"\\]', lambda found: _ESCAPES[found[0]], value[1:-1])
    return value.split(" #")[0].rstrip()
