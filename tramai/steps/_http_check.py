"""What is wrong with the settings of an `http` step, before anything is rendered."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import Pointer
from ..permits import host_allowed
from ..step import Finding
from ._http_check_files import files, ways
from ._http_guard import host_problem, reason

if TYPE_CHECKING:
    from .http import Http

_MANAGED = {"host", "content-length", "transfer-encoding", "connection"}
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SCHEME = re.compile(r"([^:/?#]*)([:/?#]|$)")
_AUTHORITY = re.compile(
    r"https?://(?P<user>[^/?#@]*@)?(?P<host>\[[^\]/?#]*\]|[^:/?#\[\]@]*)(?P<end>(?::[0-9]*)?(?:[/?#]|$))", re.IGNORECASE
)


def findings(step: Http) -> Iterator[Finding]:
    """Every finding, in no order."""
    methods = [name for name in ("get", "post", "put", "patch", "delete", "head") if getattr(step, name) is not None]
    if len(methods) == 1:
        method, url = step.target()
        yield from _body(step, method)
        yield from _url(step, method, url.text)
    else:
        what = f"has {' and '.join(methods)}" if methods else "has none of them"
        text = f"an http step needs exactly one of get, post, put, patch, delete, head; this one {what}"
        yield Finding((), "TRM320", text, "give the URL under its method, as in `get: https://…`")
    yield from _headers(step)
    yield from _auth(step)
    yield from _reach(step)
    yield from files(step)
    yield from ways(step)


def reaches(step: Http) -> Iterator[tuple[Any, ...]]:
    """What the step reaches for outside, as `Step.reaches` gives it."""
    method, url = step.target()
    yield "http", (method,), literal_host(url.text)
    if step.follow_redirects or step.paginate is not None:
        yield from (("http", ("allow_hosts", index), host) for index, host in enumerate(step.allow_hosts or ()))
    if step.proxy is not None:
        yield "http", ("proxy",), literal_host(step.proxy)
    if step.save_to is not None:
        text = step.save_to.text
        yield "write", ("save_to",), os.path.dirname(os.path.normpath(text)) or "." if step.save_to.constant else None


def _body(step: Http, method: str) -> Iterator[Finding]:
    bodies = step.bodies()
    if step.json is not msgspec.UNSET and isinstance(step.json.data, str) and _is_json(step.json.data):
        what = "this text is sent as one text in JSON, not as the data that it spells"
        yield Finding(("json",), "TRM398", what, "write the data itself, or send the text by `body`", "warning")
    if len(bodies) > 1:
        text = f"a request has one body; this one has {' and '.join(bodies)}"
        yield Finding((bodies[1],), "TRM322", text, "keep one of them")
    elif bodies and method in ("get", "head"):
        text = f"a {method.upper()} request carries no body"
        yield Finding((bodies[0],), "TRM322", text, "use `query`, or `post`")


def _is_json(text: str) -> bool:
    """Whether a text spells a list or a mapping in JSON."""
    import json

    if not text.lstrip().startswith(("{", "[")) or "${{" in text:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _url(step: Http, method: str, text: str) -> Iterator[Finding]:
    """What a URL shows before it is rendered: its scheme, and its host where that is literal."""
    start, literal = text.partition("${{")[0], "${{" not in text
    problem = _scheme(start, literal)
    if problem is not None:
        yield Finding((method,), "TRM321", problem, "start it with https:// or http://")
        return
    found = _AUTHORITY.match(start)
    if found is None:
        if literal:
            yield Finding((method,), "TRM321", "this is no URL", "write it as https://host/path")
    elif found["user"]:
        text = "a URL may not hold a user name or password"
        yield Finding((method,), "TRM321", text, "use `auth: {basic: [user, password]}`")
    elif literal or found["end"]:  # else the host goes on in the expression
        yield from _host(step, method, found["host"].strip("[]").lower())


def literal_host(text: str) -> str | None:
    """The host of a URL, None when only the run will know it."""
    start, literal = text.partition("${{")[0], "${{" not in text
    found = _AUTHORITY.match(start)
    if found is None or not (literal or found["end"]):
        return None
    return found["host"].strip("[]").lower()


def _scheme(start: str, literal: bool) -> str | None:
    found = _SCHEME.match(start)
    if not start or found is None or not (literal or found[2]):
        return None
    if found[2] != ":":
        return "the URL has no scheme"
    if found[1].lower() in ("http", "https"):
        return None
    return f"the scheme `{found[1][:20]}` is never requested"


def _host(step: Http, method: str, host: str) -> Iterator[Finding]:
    problem = host_problem(host) if host.isascii() else None
    if problem is not None:
        hint = "an expression is written ${{ … }}" if "$" in host or "{" in host else "write it as https://host/path"
        yield Finding((method,), "TRM321", f"the URL {problem}", hint)
    elif step.allow_hosts is not None and not host_allowed(host, step.allow_hosts):
        yield Finding((method,), "TRM327", f"the host {host} is not in allow_hosts", "add it, or remove the list")
    elif (step.allow_private is None or step.allow_private.data is False) and re.fullmatch(r"[0-9.]+|.*:.*", host):
        why = reason(host)
        if why is not None:
            hint = "add `allow_private: true` if the workflow may reach it"
            yield Finding((method,), "TRM325", f"{host} is not a public address ({why})", hint)


def _headers(step: Http) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in step.headers:
        at: Pointer = ("headers", name)
        if not _NAME.fullmatch(name):
            yield Finding(at, "TRM323", f"{name!r} is no header name", "letters, digits and hyphens, without a colon")
        elif name.lower() in _MANAGED:
            yield Finding(at, "TRM323", f"the header {name} follows from the request", "remove it")
        elif name.lower() in seen:
            yield Finding(at, "TRM323", f"the header {name} is given twice, also as {seen[name.lower()]}", "keep one")
        elif name.lower() == "proxy-authorization":
            what = f"the header {name} would go to the server, and not to a proxy"
            yield Finding(at, "TRM323", what, "write proxy and proxy_auth: [user, ${{ secrets.NAME }}]")
        elif name.lower() == "idempotency-key" and step.keyed():
            yield Finding(at, "TRM323", f"the header {name} is given by `idempotency_key` too", "keep one of the two")
        elif name.lower() == "content-type" and step.multipart is not None:
            what = f"the header {name} of a multipart body holds its boundary, and so follows from it"
            yield Finding(at, "TRM323", what, "remove it")
        seen[name.lower()] = name
    if step.keyed() and step.target()[0] in ("get", "head"):
        what = f"a {step.target()[0].upper()} request may be repeated without an Idempotency-Key"
        yield Finding(("idempotency_key",), "TRM323", what, "remove it")


def _auth(step: Http) -> Iterator[Finding]:
    if step.auth is None:
        return
    if (step.auth.bearer is None) == (step.auth.basic is None):
        yield Finding(("auth",), "TRM324", "auth needs either `bearer` or `basic`", "keep one of the two")
    for name in step.headers:
        if name.lower() == "authorization":
            text = "the header Authorization is given by `auth` too"
            yield Finding(("headers", name), "TRM324", text, "keep one of the two")


def _reach(step: Http) -> Iterator[Finding]:
    data = step.allow_private.data if step.allow_private is not None else False
    if not isinstance(data, bool) and not re.fullmatch(r"\s*\$\{\{.*\}\}\s*", str(data), re.DOTALL):
        text = "allow_private must be true, false or one whole ${{ … }}"
        yield Finding(("allow_private",), "TRM326", text, "write allow_private: true")
    for index, host in enumerate(step.allow_hosts or ()):
        if host_problem(host.removeprefix("*.")) is not None:
            hint = "write only the host, as in api.example.com or *.example.com"
            yield Finding(("allow_hosts", index), "TRM327", f"{host[:80]!r} is no host", hint)
