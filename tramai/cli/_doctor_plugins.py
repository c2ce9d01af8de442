"""What `doctor` says of named MCP servers and of plugins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ._machine_documents import HealthFinding
from ._session import Session


def servers(session: Session, *, check: bool) -> Iterator[HealthFinding]:
    """The servers of the settings: whether their program is there; with `check`, what they say when they are asked."""
    for name, server in session.settings.servers.items():
        found = _server(name, server)
        if found.state == "ok" and check:
            found = _asked(name, server, session.settings.servers, found)
        yield found


def _server(name: str, server: Mapping[str, Any]) -> HealthFinding:
    import shutil
    from urllib.parse import urlsplit

    url = server.get("url")
    if url is not None:
        parts = urlsplit(str(url))
        return _of(name, "ok", f"{parts.scheme}://{parts.hostname}")
    program = str(server["command"][0])
    path = shutil.which(program)
    if path is None:
        return _of(name, "warning", f"its program {program} is not on PATH", "install it, or mend `mcp_servers`")
    return _of(name, "ok", path)


def _of(name: str, state: str, text: str, hint: str | None = None) -> HealthFinding:
    return HealthFinding(section="servers", name=name, state=state, text=text, hint=hint)  # type: ignore[arg-type]


def _asked(name: str, server: Mapping[str, Any], all_: Mapping[str, Any], found: HealthFinding) -> HealthFinding:
    """List its tools, by the very step that workflows have."""
    from .. import document, engine, plan, workflow
    from ..errors import TramaiError
    from ..stores.memory import Memory

    if "${{" in json.dumps([server.get("env"), server.get("headers")]):
        return _of(name, "ok", f"{found.text}; not asked, as it takes a secret of a workflow")
    step = {"id": "ask", "mcp": {"server": name, "list": True}, "timeout": "20s"}
    text = json.dumps({"tramai": 1, "name": "doctor", "steps": [step], "outputs": {"t": "${{ steps.ask.output }}"}})
    made, _ = workflow.examine(document.parse(text.encode(), file="doctor.yaml"))
    assert made is not None
    try:
        result = engine.run(plan.of(made), {}, store=Memory(), options=engine.Options(servers=all_))
    except TramaiError as error:
        return _of(name, "warning", f"{found.text}: {error.message}", error.hint)
    if result.error is not None:
        return _of(name, "warning", f"{found.text}: {result.error.get('message')}")
    tools = result.outputs["t"] if isinstance(result.outputs, dict) else []
    return _of(name, "ok", f"{found.text}, with {len(tools)} tools")


def plugins(session: Session) -> Iterator[HealthFinding]:
    """Whether each of them can be used. One that is broken is an error only where it is asked for."""
    from .. import kinds
    from ._plugin_list import installed

    needed = session.settings.observers
    for one in installed():
        found = kinds.Plugin(one.family, one.name, one.value, one.package, one.version)
        label = f"{kinds.WORDS[one.family]} {one.name}"
        why, hint = (one.note, None) if one.note is not None else _broken(found)
        if why is None:
            yield _plugin(label, "ok", f"{one.package} {one.version}")
        else:
            state = "error" if one.family == "observers" and one.name in needed else "warning"
            yield _plugin(label, state, why, hint)
    known = {*kinds.names("observers"), *(one.name for one in kinds.added("observers"))}
    for name in needed:
        if name not in known:
            text = "is named by the setting `observers`, and no installed package brings it"
            yield _plugin(f"observer {name}", "error", text, "install its package, or mend `observers`")


def _plugin(name: str, state: str, text: str, hint: str | None = None) -> HealthFinding:
    return HealthFinding(section="plugins", name=name, state=state, text=text, hint=hint)  # type: ignore[arg-type]


def _broken(found: Any) -> tuple[str | None, str | None]:
    """Why something cannot be used, and what to do."""
    from .. import provider
    from ..errors import PluginUnusable
    from ..steps import _plugin_kind

    looks = {"steps": _plugin_kind.load, "providers": provider.added}
    try:
        look = looks.get(found.family)
        if look is None:
            found.load()
        else:
            look(found.name)
    except PluginUnusable as error:
        return error.message, error.hint
    return None, None
