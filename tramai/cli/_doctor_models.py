"""What `doctor` says of extras, model services and agents. Keys are named, their values never."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ._machine_documents import HealthFinding

EXTRAS = {
    "ai": ("pydantic_ai", "pydantic-ai-slim"),
    "mcp": ("mcp", "mcp"),
    "postgres": ("psycopg", "psycopg"),
    "keyring": ("keyring", "keyring"),
    "otel": ("opentelemetry", "opentelemetry-sdk"),
}
"""The module that an extra brings, and its package."""
LISTS = {
    "openai": "https://api.openai.com/v1/models",
    "anthropic": "https://api.anthropic.com/v1/models",
    "google": "https://generativelanguage.googleapis.com/v1beta/models",
    "groq": "https://api.groq.com/openai/v1/models",
    "mistral": "https://api.mistral.ai/v1/models",
    "deepseek": "https://api.deepseek.com/models",
    "openrouter": "https://openrouter.ai/api/v1/models",
}
"""Where a service lists its models."""
MOVED = {"openai": ("OPENAI_BASE_URL", "/models"), "anthropic": ("ANTHROPIC_BASE_URL", "/v1/models")}
"""The variables that move a service, for runs as well; and the path below the new address."""
_SECONDS = 10.0
_MOST = 8 << 20
"""Bytes of an answer that are read."""


def models(env: Mapping[str, str], configured: Mapping[str, Any], *, check: bool) -> Iterator[HealthFinding]:
    """The extras, and for each service whether there is a key; with `check`, what the service says of it."""
    from .. import provider

    for extra, (module, package) in EXTRAS.items():
        yield _extra(extra, module, package)
    yield _of("demo", "ok", "built in: offline, for examples and tests")
    for service, names in provider.KEYS.items():
        given = [name for name in names if env.get(name)]
        if given and check and service in LISTS:
            variable, path = MOVED.get(service, ("", ""))
            url = env[variable].rstrip("/") + path if env.get(variable) else LISTS[service]
            yield _asked(service, f"{given[0]} is set", service, url, env[given[0]])
        elif given:
            yield _of(service, "ok", f"{given[0]} is set")
        elif names and service in provider.COMMON:
            yield _of(service, "absent", f"{' or '.join(names)} is not set")
    for name in configured:
        yield _configured(name, configured, check=check)


def _configured(name: str, configured: Mapping[str, Any], *, check: bool) -> HealthFinding:
    """A service of the settings: whether its key is there, and what it says."""
    from urllib.parse import urlsplit

    from .. import accounts
    from ..step import StepError

    lack = accounts.lack(f"{name}:any", configured, base=os.getcwd())
    if lack is not None:
        return _of(name, "warning", lack.message, lack.hint)
    data = configured[name]
    address = urlsplit(str(data.get("base_url") or ""))
    text = f"{data['kind']} at {address.hostname}" if address.hostname else str(data["kind"])
    if not check or not address.hostname:
        return _of(name, "ok", text)
    try:
        key = accounts.account(name, data, base=os.getcwd()).api_key
    except StepError as error:
        return _of(name, "warning", error.message, error.hint)
    path = MOVED.get(data["kind"], ("", "/models"))[1]
    return _asked(name, text, data["kind"], str(data["base_url"]).rstrip("/") + path, key)


def _of(name: str, state: str, text: str, hint: str | None = None) -> HealthFinding:
    return HealthFinding(section="models", name=name, state=state, text=text, hint=hint)  # type: ignore[arg-type]


def _extra(extra: str, module: str, package: str) -> HealthFinding:
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    if find_spec(module) is None:
        return _of(f"tramai[{extra}]", "absent", "not installed", f"pip install 'tramai[{extra}]'")
    try:
        return _of(f"tramai[{extra}]", "ok", f"{package} {version(package)}")
    except PackageNotFoundError:
        return _of(f"tramai[{extra}]", "ok", f"{module} can be imported")


def _asked(name: str, text: str, kind: str, url: str, key: str | None) -> HealthFinding:
    """Ask for the list of models: it costs nothing, and tells whether the key is good."""
    import json

    import httpx

    headers = {"Authorization": f"Bearer {key}"}
    if kind == "anthropic":
        headers = {"x-api-key": str(key), "anthropic-version": "2023-06-01"}
    elif kind == "google":
        headers = {"x-goog-api-key": str(key)}
    try:
        with httpx.stream("GET", url, headers=headers if key else {}, timeout=_SECONDS) as answer:
            status = answer.status_code
            listed = json.loads(_read(answer.iter_bytes())) if status == 200 else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
        return _of(name, "warning", f"{text}, and the service does not answer: {type(error).__name__}")
    if status in (401, 403):
        return _of(name, "warning", f"{text}, and the service refuses the key", "give it a key that is good")
    if status != 200:
        return _of(name, "warning", f"{text}, and the service answers with {status}")
    found = listed.get("data", listed.get("models")) if isinstance(listed, dict) else None
    count = f" with {len(found)} models" if isinstance(found, list) else ""
    return _of(name, "ok", f"{text}, and the service answers{count}")


def _read(pieces: Iterator[bytes]) -> bytes:
    """An answer of a decent size that came in a decent time: whoever is asked may be anybody."""
    end, data = time.monotonic() + _SECONDS, b""
    for piece in pieces:
        data += piece
        if len(data) > _MOST or time.monotonic() > end:
            raise TimeoutError
    return data


def agents(*, check: bool) -> Iterator[HealthFinding]:
    """Which agents are on PATH; with `check`, which version answers."""
    import shutil

    from .. import kinds

    for name in ("claude", "codex", "hermes"):
        path = shutil.which(name)
        if path is None:
            hint = getattr(kinds.find("steps", name), "install", None)
            yield HealthFinding(section="agents", name=name, state="absent", text="not on PATH", hint=hint)
            continue
        if not check:
            yield HealthFinding(section="agents", name=name, state="ok", text=path)
            continue
        try:
            version = _version(path)
        except OSError:  # the right to start it, and no program in it
            version = None
        if version is None:
            text, hint = f"{path} does not tell its version", f"look: {name} --version"
            yield HealthFinding(section="agents", name=name, state="warning", text=text, hint=hint)
        else:
            yield HealthFinding(section="agents", name=name, state="ok", text=f"{path}, {version}")


def _version(path: str) -> str | None:
    """The first line of `--version`; the whole group is ended when it takes too long."""
    import signal
    import subprocess

    with subprocess.Popen(
        [path, "--version"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        try:
            out, _ = child.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            out = b""
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    lines = out.decode("utf-8", "replace").strip().splitlines()
    return lines[0][:100] if lines and child.returncode == 0 else None
