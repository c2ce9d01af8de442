"""What is wrong with the newer half of an `http` step: files, downloads, pages, and the way that requests take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..expression import Template, Value
from ..step import Finding
from . import _http_route as route

if TYPE_CHECKING:
    from .http import Http

_PART = "write a text, {text: …, type: …}, or {file: path}"


def files(step: Http) -> Iterator[Finding]:
    """Parts that can be sent, a download that can be saved, pages that can be taken."""
    for name, part in (step.multipart or {}).items():
        yield from _part(name, part)
    if step.multipart is not None and not step.multipart:
        yield Finding(("multipart",), "TRM347", "a multipart body has at least one part", _PART)
    if step.save_to is not None and step.head is not None:
        yield Finding(("save_to",), "TRM347", "a HEAD request has no body to save", "use `get`")
    if step.max_download is not None and step.save_to is None:
        text = "`max_download` is about the file of `save_to`, and there is none"
        yield Finding(("max_download",), "TRM347", text, "for a body that is taken, write max_response")
    yield from _pages(step)


def _part(name: str, part: Value) -> Iterator[Finding]:
    at, data = ("multipart", name), part.data
    if not isinstance(data, dict):
        return
    if ("text" in data) == ("file" in data):
        what = "has both" if "text" in data else "has neither"
        yield Finding(at, "TRM347", f"a part is either a `text` or a `file`; this one {what}", _PART)
    elif "name" in data and "file" not in data:
        yield Finding((*at, "name"), "TRM347", "`name` is the name of a `file`, and there is none", "remove it")


def _pages(step: Http) -> Iterator[Finding]:
    how = step.paginate
    if how is None:
        return
    at = ("paginate",)
    if step.get is None:
        yield Finding(at, "TRM348", "pages are taken by `get`", "use `get`, or a `repeat` around the step")
    if step.save_to is not None:
        yield Finding(at, "TRM348", "pages are joined, not saved", "remove `save_to`, and write the output to a file")
    for name in ("next", "items"):
        expression = getattr(how, name)
        if not _looks_at_result(expression) and next(expression.problems(), None) is None:
            text = f"`{name}` is the same for every page: it does not look at `result`"
            hint = "result.body is the body of the page, result.links.next the next page by its Link header"
            yield Finding((*at, name), "TRM348", text, hint)


def _looks_at_result(expression: Template) -> bool:
    names = (use for site in expression.sites() for parsed in site.expressions for use in parsed.names)
    return any(use.path[0] == "result" for use in names)


def ways(step: Http) -> Iterator[Finding]:
    """A proxy that can be asked, and whose password is a secret."""
    problem = route.proxy_problem(step.proxy) if step.proxy is not None else None
    if problem is not None:
        yield Finding(("proxy",), "TRM349", *problem)
    problem = route.auth_problem(step.proxy_auth, step.proxy)
    if problem is not None:
        yield Finding(("proxy_auth",), "TRM349", *problem)
