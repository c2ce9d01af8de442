"""One call of the command line: its flags, its settings, its two streams, its store."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._settings import Settings, gather
from ._terminal import Terminal

if TYPE_CHECKING:
    from ..diagnostics import Diagnostic
    from ..store import Store


class Session:
    """Made empty before the arguments are parsed, so that the error edge always has one.

    `arguments` are the words after `tramai`; flags arrive one by one while they are parsed.
    """

    def __init__(self, arguments: list[str] | None = None) -> None:
        self.arguments = arguments or []
        self.flags: dict[str, Any] = {}
        self.started_in = _here()
        self.run_id: str | None = None
        """The run that this call is about, for error documents."""
        self.sources: dict[str, str] = {}
        """Texts that cannot be read again: standard input, by the name it has in problems."""
        self.diagnosed: dict[str, Diagnostic] = {}
        """What was behind the faults of this call, by their references."""
        self.watching: list[Any] = []
        """Observers of a run that this call wants to have, besides those of the settings."""
        self.elsewhere = True
        """Whether what is shown will be typed where this call was, and not in the folder that it works in."""
        self._store: Store | None = None

    def begin(self) -> None:
        """Change the folder and take the env file, once the flags are known."""
        from ..errors import ConfigurationError

        folder = self.flags.get("directory")
        if folder:
            try:
                os.chdir(folder)
            except OSError as error:
                raise ConfigurationError(what=f"-C {folder}: {error.strerror}") from None
        elif not self.started_in:
            hint = "cd to a folder that is there, or name one with -C DIR"
            raise ConfigurationError(what="the folder we are in has been removed", hint=hint)
        if self.flags.get("env_file"):
            self._take_variables(self.flags["env_file"])

    @functools.cached_property
    def settings(self) -> Settings:
        """Flags, environment and configuration files together."""
        return gather(self.flags)

    def variables(self) -> None:
        """Take the variables of the file that the configuration names, for a command that looks at secrets."""
        file = self.settings.env_file
        if file is not None and os.path.exists(file):
            self._take_variables(file)

    def _take_variables(self, file: str) -> None:
        from ..secret import open_to_others
        from . import _envfile

        for name, value in _envfile.read(file).items():
            os.environ.setdefault(name, value)
        if (said := open_to_others(file)) is not None:
            self.note(said)

    @functools.cached_property
    def out(self) -> Terminal:
        """Standard output: results."""
        return Terminal(sys.stdout, colour=self._colour, typed=self.typed)

    @functools.cached_property
    def err(self) -> Terminal:
        """Standard error: progress, notes, errors."""
        return Terminal(sys.stderr, colour=self._colour, typed=self.typed)

    @property
    def _colour(self) -> str:
        from ..errors import TramaiError

        try:
            if "color" not in self.flags and "--color" in self.arguments:  # they could not be parsed
                return gather({"color": [*self.arguments, None][self.arguments.index("--color") + 1]}).text("color")
            return self.settings.text("color")
        except (TramaiError, OSError):
            return "auto"

    @property
    def json(self) -> bool:
        """Whether the result is one JSON document; also known when the arguments cannot be parsed."""
        before = self.arguments[: self.arguments.index("--")] if "--" in self.arguments else self.arguments
        return bool(self.flags.get("json")) or "--json" in before

    @property
    def quiet(self) -> bool:
        """`-q`: results and errors only."""
        return bool(self.flags.get("quiet"))

    @property
    def verbose(self) -> bool:
        """`-v`: the whole digest, replayed steps, origins of settings."""
        return bool(self.flags.get("verbose"))

    @property
    def debug(self) -> bool:
        """`--debug`: what is behind a fault is shown too."""
        return bool(self.flags.get("debug"))

    def store(self) -> Store:
        """The store, made if there is none yet."""
        if self._store is None:
            if self.settings.store_is_default:
                _make_private_folder(os.path.dirname(self.settings.default_path))
            self._store = self._open(create=True)
        return self._store

    def must_last(self) -> None:
        """Refuse a store that is gone with this process, where something is left in it for others."""
        if self.settings.store.partition(":")[0] == "memory":
            from ..errors import UsageError

            raise UsageError(what="memory: is not shared between processes", hint="sqlite:PATH is, on one host")

    def looking(self) -> Store:
        """The store for those who only look: where there is none, an empty one, and nothing is made."""
        if self._store is None:
            self._store = self._open(create=False)
        return self._store

    def _open(self, *, create: bool) -> Store:
        from ..stores import open_store

        return open_store(self.settings.store, create=create)

    def logs_folder(self) -> str:
        """The folder for what children write."""
        return os.path.join(os.path.abspath(self.settings.root), ".tramai", "logs")

    def logs(self) -> str | None:
        """The same, with its parent made if there is none; None, and a note, where nothing can be written."""
        from ..errors import StoreUnavailable

        folder = self.logs_folder()
        try:
            _make_private_folder(os.path.dirname(folder))
            if os.access(folder if os.path.isdir(folder) else os.path.dirname(folder), os.W_OK | os.X_OK):
                return folder
        except StoreUnavailable:
            pass
        self.note(f"what the steps write is not kept: {folder} cannot be written")
        return None

    def emit(self, document: Mapping[str, Any] | Any) -> None:
        """Print a document of `_documents` as one line of JSON."""
        from ._encode import dump

        self.out.line(dump(document))

    def diagnose(self, diagnostic: Diagnostic) -> None:
        """Keep what is behind a fault, and append it to the file that TRAMAI_DIAGNOSTICS names."""
        self.diagnosed[diagnostic.id] = diagnostic
        file = os.environ.get("TRAMAI_DIAGNOSTICS")
        if file:
            from ..diagnostics import append

            append(os.path.join(self.started_in, file), diagnostic)

    def note(self, text: str) -> None:
        """Tell a person something that is not the result."""
        if not (self.quiet or self.json):
            self.err.line(self.typed(text))

    def typed(self, text: str) -> str:
        """A text of ours whose commands find the same runs as this call."""
        if not (self.elsewhere and (self.flags.get("store") or self.flags.get("directory"))):
            return text
        from ._again import typed

        return typed(self, text)

    def close(self) -> None:
        """Give the store back and return to the folder the call came from."""
        store, self._store = self._store, None
        try:
            if store is not None:
                store.close()
        finally:
            if self.flags.get("directory") and self.started_in:
                os.chdir(self.started_in)


def _here() -> str:
    """The folder we are in; empty when it has been removed under our feet."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _make_private_folder(folder: str) -> None:
    """Owner-only, and kept out of version control by its own ignore file."""
    from ..errors import StoreUnavailable

    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        ignore = os.path.join(folder, ".gitignore")
        if not os.path.exists(ignore):
            with open(ignore, "w", encoding="ascii") as file:
                file.write("*\n")
    except OSError as error:
        raise StoreUnavailable(what=f"its folder cannot be made ({error.strerror})") from None
