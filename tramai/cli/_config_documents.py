"""The JSON document of `tramai config`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Text = str | None


class SettingView(Struct, frozen=True, kw_only=True):
    """One setting. What may be a secret in its value is masked."""

    key: Annotated[str, Meta(description="as in tramai.toml; of a table, table.name")]
    value: Annotated[Any, Meta(description="null when nobody said one and there is no default")]
    source: Annotated[
        Literal["flag", "variable", "project", "user", "default"],
        Meta(description="project: tramai.toml or [tool.tramai] of pyproject.toml; user: your own config.toml"),
    ]
    origin: Annotated[str, Meta(description="the flag, the variable, the file with its line, or default")]
    file: Text = None
    line: int | None = None


class Configuration(Struct, frozen=True, kw_only=True):
    """`config show`: every setting that holds here."""

    schema: Literal["tramai.config/1"] = "tramai.config/1"
    root: Annotated[str, Meta(description="the folder whose .tramai holds the default store and the logs")]
    files: Annotated[list[str], Meta(description="the configuration files that were read; a later one wins")]
    settings: list[SettingView]
    notes: Annotated[list[str], Meta(description="variables that look like a setting and are none")]


DOCUMENTS = (Configuration,)
