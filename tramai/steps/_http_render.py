"""From the settings of an `http` step and the run's values to the request that is sent."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from .. import __version__, size
from ..expression import Template, Value
from ..running import Context
from ..step import Replay, StepError
from ._http_body import ENCODINGS
from ._http_exchange import Call
from ._http_files import writable
from ._http_route import route
from ._http_save import MOST, Target
from ._http_send import Content, file_body, multipart

if TYPE_CHECKING:
    from .http import Http


def render(step: Http, ctx: Context, opened: ExitStack) -> Call:
    """The whole request. StepError `expression` for a value that cannot stand where it is.

    `opened` gets the files that are sent.
    """
    method, target = step.target()
    save = _target(step, ctx)
    way = route(step, ctx)
    content, kind = _content(step, ctx, opened)
    expected = step.expect_status if isinstance(step.expect_status, tuple) else (step.expect_status,)
    return Call(
        method=method.upper(),
        url=_url(ctx.text(target).strip(), step.query, ctx),
        headers=tuple(_headers(step, ctx, kind, content)),
        content=content,
        private_url=_private(target) or any(_private(value) for value in step.query.values()),
        private_body=any(_private(part) for part in _parts(step)),
        expected=expected,
        limit=size.parse(step.max_response),
        follow=step.follow_redirects,
        allow_private=_boolean(step.allow_private, ctx),
        allow_hosts=step.allow_hosts,
        permits=ctx.permits,
        route=way,
        save=save,
    )


def _target(step: Http, ctx: Context) -> Target | None:
    """Where the body goes."""
    if step.save_to is None:
        return None
    said, path = writable("save_to", step.save_to, ctx)
    limit = size.parse(step.max_download) if step.max_download is not None else MOST
    return Target(said, path, ctx.idempotency_key[:24], limit)


def _url(url: str, query: Mapping[str, Value], ctx: Context) -> str:
    added = urlencode(list(_pairs("query", query, ctx)))
    if not added:
        return url
    url, mark, fragment = url.partition("#")
    return f"{url}{'&' if '?' in url else '?'}{added}{mark}{fragment}"


def _pairs(field: str, values: Mapping[str, Value], ctx: Context) -> Iterator[tuple[str, str]]:
    for name, source in values.items():
        value = ctx.value(source)
        for item in value if isinstance(value, list) else (value,):
            yield name, _text(f"{field}.{name}", item)


def _text(where: str, value: Any) -> str:
    if isinstance(value, str):
        _utf8(where, value)
        return value
    if value is None or isinstance(value, (list, dict)):
        what = "null" if value is None else "a map" if isinstance(value, dict) else "a list inside a list"
        raise StepError("expression", f"{where} is {what}, not a text", hint="give a text, or a list of texts")
    return json.dumps(value)


def _content(step: Http, ctx: Context, opened: ExitStack) -> tuple[bytes | Content | None, str | None]:
    """The body's bytes and its content type."""
    if step.json is not msgspec.UNSET:
        text = json.dumps(ctx.value(step.json), allow_nan=False, separators=(",", ":"))
        return text.encode("ascii"), "application/json"
    if step.form is not None:
        return urlencode(list(_pairs("form", step.form, ctx))).encode("ascii"), "application/x-www-form-urlencoded"
    if step.body is not None:
        return _utf8("body", ctx.text(step.body)), "text/plain; charset=utf-8"
    if step.body_file is not None:
        return file_body(step.body_file, ctx, opened)
    if step.multipart is not None:
        return multipart(step.multipart, ctx, opened, _text)
    return None, None


def _headers(
    step: Http, ctx: Context, kind: str | None, content: bytes | Content | None
) -> Iterator[tuple[str, bytes]]:
    given = {name: _line(f"the header {name}", ctx.text(value)) for name, value in step.headers.items()}
    defaults = {"User-Agent": f"tramai/{__version__}", "Accept": "*/*", "Accept-Encoding": ENCODINGS}
    if kind is not None:
        defaults["Content-Type"] = kind
    if step.save_to is not None:
        defaults["Accept-Encoding"] = "identity"
    if isinstance(content, Content):
        defaults["Content-Length"] = str(content.length)
    key = step.idempotency_key
    if step.keyed() and key is not None and not isinstance(key.data, bool):
        given["Idempotency-Key"] = _key(ctx.value(key))
    elif step.keyed() or (ctx.policy is Replay.IDEMPOTENT and step.target()[0] in ("post", "patch")):
        defaults["Idempotency-Key"] = ctx.idempotency_key
    lower = {name.lower() for name in given}
    for name, value in defaults.items():
        if name.lower() not in lower:
            yield name, value.encode("ascii")
    if step.auth is not None:
        yield "Authorization", _authorization(step, ctx)
    yield from given.items()


def _key(value: Any) -> bytes:
    key = _line("idempotency_key", _text("idempotency_key", value))
    if not key:
        raise StepError("expression", "idempotency_key is empty")
    return key


def _authorization(step: Http, ctx: Context) -> bytes:
    assert step.auth is not None  # asked by the caller
    if step.auth.basic is not None:
        user, password = (_utf8("auth.basic", ctx.text(part)) for part in step.auth.basic)
        if b":" in user:
            raise StepError("expression", "the user name in auth.basic has a colon, which basic authentication forbids")
        return b"Basic " + base64.b64encode(user + b":" + password)
    assert step.auth.bearer is not None  # `check` refuses neither
    token = _line("auth.bearer", ctx.text(step.auth.bearer))
    if not token:
        raise StepError("expression", "auth.bearer is empty")
    return b"Bearer " + token


def _line(where: str, text: str) -> bytes:
    """A header value; what could end the line or the header is refused, white space around it is not kept."""
    value = _utf8(where, text).strip(b" \t")
    if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
        hint = "a line break at the end of a secret's file is often the cause"
        raise StepError("expression", f"{where} holds a line break or control character", hint=hint)
    return value


def _utf8(where: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise StepError("expression", f"{where} holds half of a surrogate pair, which no encoding can say") from None


def _boolean(source: Value | None, ctx: Context) -> bool:
    value = False if source is None else ctx.value(source)
    if not isinstance(value, bool):
        raise StepError("expression", "allow_private must be true or false")
    return value


def _parts(step: Http) -> Iterator[Template | Value]:
    if step.json is not msgspec.UNSET:
        yield step.json
    if step.body is not None:
        yield step.body
    yield from (step.form or {}).values()
    yield from (step.multipart or {}).values()


def _private(source: Template | Value) -> bool:
    """Whether a secret may stand in it: `env` may be made of secrets."""
    return any(
        use.path[0] in ("secrets", "env")
        for site in source.sites()
        for expression in site.expressions
        for use in expression.names
    )
