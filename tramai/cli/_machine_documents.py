"""The JSON documents of the commands that look at this machine. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Text = str | None


class InstalledPlugin(Struct, frozen=True, kw_only=True):
    """What an installed package brings."""

    family: Literal["steps", "providers", "stores", "observers"]
    name: str
    package: str
    version: str
    value: Annotated[str, Meta(description="module:Class")]
    note: Annotated[Text, Meta(description="why it is never used: the name is built in, or brought twice")] = None


class Plugins(Struct, frozen=True, kw_only=True):
    """`plugin list`: everything that installed packages bring. Nothing of them was imported."""

    schema: Literal["tramai.plugins/1"] = "tramai.plugins/1"
    plugins: list[InstalledPlugin]


class HealthFinding(Struct, frozen=True, kw_only=True):
    """One thing that `doctor` looked at."""

    section: Literal["environment", "settings", "store", "models", "agents", "programs", "servers", "plugins"]
    name: str
    state: Annotated[
        Literal["ok", "absent", "warning", "error"],
        Meta(description="ok; absent: not here, and needed only by those who use it; warning; error"),
    ]
    text: str
    hint: Text = None


class Health(Struct, frozen=True, kw_only=True):
    """`doctor`. `usable`: there is no error. `checked`: services and servers were asked as well."""

    schema: Literal["tramai.doctor/1"] = "tramai.doctor/1"
    usable: bool
    checked: bool
    findings: list[HealthFinding]


DOCUMENTS = (Plugins, Health)
