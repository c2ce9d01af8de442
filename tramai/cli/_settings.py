"""What the command line is set to: flag, then `TRAMAI_*`, then project file, then user file, then default."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigurationError, Position, UsageError

KEYS = ("store", "wait", "lease", "progress", "color", "retention", "env_file")
CHOICES = {
    "progress": ("auto", "live", "plain", "none", "github", "gitlab", "azure"),
    "color": ("auto", "always", "never"),
}
DEFAULTS = {"wait": "60s", "lease": "30s", "progress": "auto", "color": "auto"}
PROJECT = "tramai.toml"
SERVERS = "mcp_servers"
HTTP = "http"
PROVIDERS = "providers"
TABLES = (SERVERS, HTTP, PROVIDERS)
OBSERVERS = "observers"


class Settings:
    """Every setting with its origin. `root` is the folder whose `.tramai/` holds the default store."""

    def __init__(
        self,
        values: Mapping[str, str],
        origins: Mapping[str, str],
        root: str,
        tables: Mapping[str, Mapping[str, Any]],
        files: tuple[str, ...] = (),
        said_in: Mapping[str, str] | None = None,
    ) -> None:
        self._values = values
        self._origins = origins
        self._said_in = said_in or {}
        self.root = root
        self.files = files
        """The configuration files that were read; a later one wins."""
        self.servers = tables[SERVERS]
        """MCP servers by name."""
        self.http = tables[HTTP]
        """How requests leave this machine."""
        self.providers = tables[PROVIDERS]
        """Model services by name."""
        self.observers = tables[OBSERVERS]
        """Names of those who watch every run, each with the place that says so."""

    def text(self, key: str) -> str:
        """The value as written."""
        return self._values[key]

    def origin(self, key: str) -> str:
        """Where the value comes from: a flag, a variable, a file, or `default`."""
        return self._origins[key]

    def found(self, key: str) -> tuple[str | None, str, Position | None]:
        """The value, None where nobody said one; where it comes from; and its place, if that is a file.

        Of what stands in a table, the key is `table.name`, and the value is left to `servers` and the others.
        """
        origin = self._origins.get(key, "default")
        file = self._said_in.get(key) if ": " in origin else None
        place = (_key_place(file, key) or _key_place(file, key.partition(".")[0])) if file is not None else None
        return self._values.get(key), origin, place

    def seconds(self, key: str) -> float:
        """The value as a duration."""
        from ..duration import parse

        try:
            return parse(self._values[key])
        except ValueError as error:
            raise UsageError(what=f"{self._origins[key]}: {error}") from None

    @property
    def retention(self) -> float | None:
        """Seconds that a run is kept after its end; None when nobody said."""
        return self.seconds("retention") if self._values.get("retention") else None

    @property
    def env_file(self) -> str | None:
        """The file of variables that the configuration names; it need not be there."""
        return self._values.get("env_file") if self._origins.get("env_file") != "--env-file" else None

    def described(self) -> list[str]:
        """Every setting with its value and origin, for people."""
        from ..stores import shown

        found = [f"store {shown(self.store)} ({self._origins.get('store', 'default')})"]
        named = (*DEFAULTS, "env_file") if self.env_file is not None else tuple(DEFAULTS)
        return found + [f"{key} {self._values[key]} ({self._origins[key]})" for key in named]

    @property
    def store(self) -> str:
        """The URL of the store."""
        return self._values.get("store") or "sqlite:" + self.default_path

    @property
    def default_path(self) -> str:
        """Where the default store lives: relative when that is shorter to read."""
        path = os.path.join(self.root, ".tramai", "tramai.db")
        return os.path.relpath(path) if os.path.samefile(self.root, os.getcwd()) else path

    @property
    def store_is_default(self) -> bool:
        """Whether nobody chose a store."""
        return not self._values.get("store")


def gather(flags: Mapping[str, Any], env: Mapping[str, str] = os.environ) -> Settings:
    """Read all sources; ConfigurationError with the place for a key or value that means nothing."""
    values, origins = dict(DEFAULTS), dict.fromkeys(DEFAULTS, "default")
    tables: dict[str, dict[str, Any]] = {name: {} for name in (*TABLES, OBSERVERS)}
    project = _project_file(os.getcwd())
    files = tuple(file for file in (_user_file(env), project) if file is not None)
    said_in: dict[str, str] = {}
    for file in files:
        said_in.update(dict.fromkeys(_take(_read(file), file, values, origins, tables), file))
    for key in KEYS:
        if env.get(f"TRAMAI_{key.upper()}"):
            values[key], origins[key] = env[f"TRAMAI_{key.upper()}"], f"TRAMAI_{key.upper()}"
        if flags.get(key) is not None:
            values[key], origins[key] = str(flags[key]), f"--{key.replace('_', '-')}"
    for key, allowed in CHOICES.items():
        if values[key] not in allowed:
            raise UsageError(what=f"{origins[key]}: '{values[key]}' is not one of {', '.join(allowed)}")
    return Settings(values, origins, os.path.dirname(project) if project else os.getcwd(), tables, files, said_in)


def _project_file(folder: str) -> str | None:
    """The nearest `tramai.toml`, or `pyproject.toml` with a table of ours, here or above."""
    while True:
        own, shared = os.path.join(folder, PROJECT), os.path.join(folder, "pyproject.toml")
        if os.path.isfile(own):
            return own
        if os.path.isfile(shared) and b"[tool.tramai" in _bytes(shared):
            return shared
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _user_file(env: Mapping[str, str]) -> str | None:
    # platformdirs knows the other systems; on Linux its rule is this line, and importing it costs as much as a store.
    if sys.platform.startswith("linux"):
        folder = os.path.join(env.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "tramai")
    else:
        import platformdirs

        folder = platformdirs.user_config_dir("tramai", appauthor=False)
    path = os.path.join(folder, "config.toml")
    return path if os.path.isfile(path) else None


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigurationError(what=f"{path} cannot be read: {error.strerror}") from None


def _read(path: str) -> dict[str, Any]:
    import tomllib

    try:
        text = _bytes(path).decode("utf-8-sig")
        data = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            what=f"{_near(path)} is not TOML: {error}", position=_toml_place(path, error)
        ) from None
    if os.path.basename(path) == "pyproject.toml":
        data = data.get("tool", {}).get("tramai", {})
    return data


def _take(
    data: Mapping[str, Any],
    file: str,
    values: dict[str, str],
    origins: dict[str, str],
    tables: dict[str, dict[str, Any]],
) -> list[str]:
    """Take what a file says; the keys it said, those in tables as `table.name`."""
    said = []
    for key, value in data.items():
        if key in TABLES:
            read = {SERVERS: _servers, HTTP: _http, PROVIDERS: _providers}[key]
            told = read(file, value)
            tables[key].update(told)
            said += [f"{key}.{name}" for name in told]
            continue
        said.append(key)
        if key == OBSERVERS:
            tables[key] = _observers(file, value)
            continue
        if key not in KEYS:
            _refuse(file, key, f"unknown key '{key}' in {_near(file)}", _suggest(key))
        if not isinstance(value, str):
            _refuse(file, key, f"'{key}' in {_near(file)} must be text", f'write {key} = "{value}"')
        if key in CHOICES and value not in CHOICES[key]:
            _refuse(file, key, f"'{key}' in {_near(file)} must be one of {', '.join(CHOICES[key])}", None)
        if key in ("wait", "lease", "retention"):
            _check_duration(file, key, value)
        values[key] = _placed(file, key, value)
    origins.update({key: f"{_near(file)}: {key}" for key in said})
    return said


def _servers(file: str, data: Any) -> dict[str, Any]:
    from ._servers import wrong

    if not isinstance(data, dict):
        _refuse(file, SERVERS, f"'{SERVERS}' in {_near(file)} must be a table", f"write [{SERVERS}.NAME]")
    for name, server in data.items():
        found = wrong(name, server)
        if found is not None:
            _refuse(file, f"{SERVERS}.{name}", f"MCP server '{name}' in {_near(file)}: {found[0]}", found[1])
    return data  # type: ignore[no-any-return]


def _providers(file: str, data: Any) -> dict[str, Any]:
    from ..accounts import wrong

    if not isinstance(data, dict):
        _refuse(file, PROVIDERS, f"'{PROVIDERS}' in {_near(file)} must be a table", f"write [{PROVIDERS}.NAME]")
    for name, given in data.items():
        found = wrong(name, given)
        if found is not None:
            what = f"model provider '{name}' in {_near(file)}: {found[0]}"
            _refuse(file, f"{PROVIDERS}.{name}", what, found[1])
    return data  # type: ignore[no-any-return]


def _observers(file: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        what = f"'{OBSERVERS}' in {_near(file)} must be a list of names"
        _refuse(file, OBSERVERS, what, f'write {OBSERVERS} = ["name"]')
    return dict.fromkeys(data, _key_place(file, OBSERVERS))


def _http(file: str, data: Any) -> dict[str, Any]:
    from ._requests import wrong

    if not isinstance(data, dict):
        _refuse(file, HTTP, f"'{HTTP}' in {_near(file)} must be a table", f"write [{HTTP}]")
    found = wrong(data)
    if found is not None:
        _refuse(file, HTTP, f"[{HTTP}] in {_near(file)}: {found[0]}", found[1])
    if "ca_bundle" in data:
        data = {**data, "ca_bundle": os.path.join(os.path.dirname(file), data["ca_bundle"])}
    return data  # type: ignore[no-any-return]


def _check_duration(file: str, key: str, value: str) -> None:
    from ..duration import parse

    try:
        parse(value)
    except ValueError as error:
        _refuse(file, key, f"'{key}' in {_near(file)}: {error}", None)


def _placed(file: str, key: str, value: str) -> str:
    if key == "env_file":
        return os.path.join(os.path.dirname(file), os.path.expanduser(value))
    return _beside(file, value) if key == "store" else value


def _beside(file: str, url: str) -> str:
    """A relative path in a configuration file starts at that file, wherever the command was started."""
    scheme, _, path = url.partition(":")
    if scheme not in ("sqlite", "file", "markdown") or os.path.isabs(path):
        return url
    return f"{scheme}:{os.path.join(os.path.dirname(file), path)}"


def _near(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _suggest(key: str) -> str:
    import difflib

    known = (*KEYS, *TABLES, OBSERVERS)
    near = difflib.get_close_matches(key, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"


def _refuse(file: str, key: str, what: str, hint: str | None) -> None:
    raise ConfigurationError(what=what, hint=hint, position=_key_place(file, key))


def _key_place(file: str, key: str) -> Position | None:
    import re

    pattern = re.compile(rf"""\s*(?:"{re.escape(key)}"|'{re.escape(key)}'|({re.escape(key)}))\s*[.=]""")
    shared = os.path.basename(file) == "pyproject.toml"
    table: str | None = ""
    for number, line in enumerate(_bytes(file).decode("utf-8-sig", "replace").splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = stripped.split("#")[0].strip().strip("[]").strip()
        ours = table == ("tool.tramai" if shared else "")
        named = f"tool.tramai.{key}" if shared else key
        if (ours and pattern.match(line)) or table == named:
            start = line.find(key) + 1
            return Position(_near(file), number, start, number, start + len(key))
    return None


def _toml_place(path: str, error: ValueError) -> Position | None:
    import re

    found = re.search(r"at line (\d+), column (\d+)", str(error))
    if found is None:
        return None
    line, column = int(found[1]), int(found[2])
    return Position(_near(path), line, column, line, column + 1)
