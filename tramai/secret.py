"""Fetches the secrets a workflow declares, from its sources and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .definition import SecretSource
from .errors import SecretMissing


def resolve(sources: Mapping[str, SecretSource], *, base: str) -> dict[str, str]:
    """The value of every declared secret; SecretMissing, before anything runs, for the first that is not there.

    A relative `file` stands below `base`, the folder in which the run was started. One line break at its end is not
    part of the secret. An empty value counts as missing.
    """
    return {name: _value(name, source, base) for name, source in sources.items()}


def source_of(source: SecretSource) -> str:
    """Where the value comes from, for people."""
    return f"environment variable {source.env}" if source.env is not None else f"file {source.file}"


def present(source: SecretSource, *, base: str) -> bool:
    """Whether the value is there."""
    if source.env is not None:
        return bool(os.environ.get(source.env))
    return os.path.isfile(os.path.join(base, source.file or ""))


def _value(name: str, source: SecretSource, base: str) -> str:
    if source.env is not None:
        value = os.environ.get(source.env, "")
        hint = f"set it: export {source.env}=…"
    else:
        try:
            with open(os.path.join(base, source.file or ""), encoding="utf-8") as file:
                value = file.read().removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError):
            value = ""
        hint = f"write its value to {source.file}"
    if not value:
        raise SecretMissing(name=name, source=source_of(source), hint=hint)
    return value
