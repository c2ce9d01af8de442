"""`--env-file`: variables for secrets and the environment, one `NAME=value` a line."""

from __future__ import annotations

import re

from ..errors import ConfigurationError

_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def read(path: str) -> dict[str, str]:
    """The variables of a file: `NAME=value`, `export NAME=value`, `#` comments; nothing is expanded.

    A value in quotes may have several lines, and inside double quotes `\\n`, `\\t`, `\\"` and `\\\\`.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigurationError(what=f"the env file {path} cannot be read: {reason}") from None
    if (at := text.find("\0")) >= 0:
        what = f"{path}:{text.count(chr(10), 0, at) + 1} holds a NUL character"
        raise ConfigurationError(what=what, hint="no variable can have one: save the file as UTF-8 text")
    found: dict[str, str] = {}
    rest = iter(enumerate(text.split("\n"), 1))  # `splitlines` would cut a value at characters that JSON may hold
    for number, line in rest:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        if not equals or not name.strip().isidentifier():
            # The line may hold a secret, so it is named by its number and has no position: an excerpt would show it.
            raise ConfigurationError(what=f"{path}:{number} is not NAME=value", hint="write NAME=value, or # before it")
        value = value.strip()
        while _open(value):
            following = next(rest, None)
            if following is None:
                raise ConfigurationError(what=f"{path}:{number} begins a value in quotes that has no end")
            value += "\n" + following[1]
        found[name.strip()] = _unquote(value.rstrip())
    return found


def _open(value: str) -> bool:
    """Whether a value in quotes goes on in the next line."""
    if value[:1] == "'":
        return "'" not in value[1:]
    return value[:1] == '"' and re.fullmatch(r'"(?:[^"\\]|\\.)*', value, re.DOTALL) is not None


def _unquote(value: str) -> str:
    if found := re.fullmatch(r"'([^']*)'(\s+#.*)?", value, re.DOTALL):
        return found[1]
    if found := re.fullmatch(r'"((?:[^"\\]|\\.)*)"(\s+#.*)?', value, re.DOTALL):
        return re.sub(r'\\[nt"\\]', lambda escape: _ESCAPES[escape[0]], found[1])
    return value.split(" #")[0].rstrip()
