"""How a request leaves this machine: a proxy, the authorities whose certificates count, and a certificate of our own.

All of it is said by the step or by `[http]` of the configuration. The proxy variables of the environment are not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..expression import Text, dec_hook
from ..permits import guard_host, host_allowed
from ..step import StepError
from . import _http_guard as guard
from ._http_files import FileTrouble, readable
from ._http_settings import Credentials

if TYPE_CHECKING:
    import ssl

    import httpx

    from ..running import Context
    from .http import Http

_PROXY = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<user>.*@)?(?P<host>\[[^\]]*\]|[^:/?#@\[\]]*)(:(?P<port>[0-9]{1,5}))?/?",
    re.DOTALL,
)
VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")


class Network(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[http]` of the configuration: what holds for the `http` steps of every workflow."""

    proxy: str | None = None
    proxy_auth: Credentials | None = None
    no_proxy: tuple[str, ...] = ()
    ca_bundle: str | None = None


def network(data: Mapping[str, Any]) -> Network:
    """The settings of the configuration; msgspec.ValidationError for what they cannot be."""
    return msgspec.convert(data, Network, dec_hook=dec_hook)


def proxy_problem(text: str) -> tuple[str, str] | None:
    """What is wrong with a proxy, and what to do; None when nothing is."""
    example = "write it as http://proxy.example.com:3128"
    if "${{" in text:
        return "the place of a proxy is fixed: an expression in it is never evaluated", example
    found = _PROXY.fullmatch(text.strip())
    if found is None:
        return f"{guard.shown(text)!r} is no proxy", example
    if found["scheme"].lower() not in ("http", "https"):
        return f"a proxy is spoken to by http or https, not by {found['scheme'][:20]}", example
    if found["user"]:
        return "a proxy's user name and password stand in `proxy_auth`", "proxy_auth: [user, ${{ secrets.NAME }}]"
    problem = guard.host_problem(found["host"].strip("[]"))
    if problem is None and found["port"] is not None and not 0 < int(found["port"]) < 65536:
        problem = f"has the port {found['port']}"
    return (f"the proxy {problem}", example) if problem is not None else None


def auth_problem(auth: tuple[Text, ...] | None, proxy: str | None) -> tuple[str, str] | None:
    """What is wrong with the credentials for a proxy: they need one, and a password is a secret."""
    if auth is None:
        return None
    if proxy is None:
        return "`proxy_auth` needs a `proxy` beside it", "write proxy: http://proxy.example.com:3128"
    if auth[1].constant:
        return "the password of a proxy may not stand in a file", "proxy_auth: [user, ${{ secrets.NAME }}]"
    return None


def no_proxy_problem(name: str) -> tuple[str, str] | None:
    """What is wrong with a host of `no_proxy`."""
    if guard.host_problem(name.removeprefix("*.")) is None:
        return None
    return f"{name[:80]!r} is no host", "write only the host, as in intranet.example.com or *.example.com"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A way out, rendered."""

    proxy: str | None = None
    auth: tuple[str, str] | None = None
    no_proxy: tuple[str, ...] = ()
    authorities: str | None = None
    certificate: tuple[str, str | None, str | None] | None = None

    def proxied(self, host: str) -> bool:
        """Whether the proxy is asked for a host."""
        return self.proxy is not None and not host_allowed(host, self.no_proxy)

    def hop(self) -> httpx.Proxy:
        """The proxy as httpx wants it."""
        import httpx

        assert self.proxy is not None  # asked by `proxied`
        url = httpx.URL(self.proxy)
        return httpx.Proxy(
            url, auth=self.auth, ssl_context=self.context(secure=True) if url.scheme == "https" else None
        )

    def context(self, *, secure: bool, shown: bool = False) -> ssl.SSLContext:
        """What is checked of the other side; `shown`: our certificate goes there."""
        if not secure:
            return guard.tls(False)
        if self.authorities is None and not (shown and self.certificate):
            return guard.tls(True)
        made = _authorities(self.authorities)
        if shown and self.certificate is not None:
            _show(made, *self.certificate)
        return made


def route(step: Http, ctx: Context) -> Route:
    """The way of a step: what it says itself, else what the configuration says."""
    try:
        common = network(ctx.http)
    except msgspec.ValidationError as error:
        raise StepError("refused", f"[http] of the configuration is not valid: {error}") from None
    proxy, auth = (step.proxy, step.proxy_auth) if step.proxy is not None else (common.proxy, common.proxy_auth)
    if step.proxy is not None:
        host = _PROXY.fullmatch(step.proxy.strip())
        guard_host(ctx.permits, host["host"].strip("[]") if host is not None else step.proxy)
    certificate = step.client_cert
    bundle = common.ca_bundle
    if step.ca_bundle is not None:
        bundle = readable("ca_bundle", step.ca_bundle, ctx)
    return Route(
        proxy=proxy.strip() if proxy is not None else None,
        auth=(ctx.text(auth[0]), ctx.text(auth[1])) if auth is not None else None,
        no_proxy=common.no_proxy,
        authorities=bundle,
        certificate=None
        if certificate is None
        else (
            readable("client_cert.cert", certificate.cert, ctx),
            readable("client_cert.key", certificate.key, ctx) if certificate.key is not None else None,
            ctx.text(certificate.password) if certificate.password is not None else None,
        ),
    )


def unused_variable(route: Route) -> str | None:
    """A proxy variable of the environment that somebody may have counted on."""
    if route.proxy is not None:
        return None
    return next((name for name in VARIABLES if os.environ.get(name)), None)


def _authorities(path: str | None) -> ssl.SSLContext:
    import ssl

    import httpx

    if path is None:
        return httpx.create_ssl_context(trust_env=True)
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        why = "it holds no certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise FileTrouble(f"ca_bundle: {path} cannot be used: {why}") from None


def _show(context: ssl.SSLContext, cert: str, key: str | None, password: str | None) -> None:
    import ssl

    try:
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(cert, key, password=password if password is not None else "")
    except (OSError, ssl.SSLError, ValueError) as error:
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or "the password does not open the key"
        raise FileTrouble(
            f"client_cert: {cert} cannot be used: {str(why).replace('_', ' ').lower()}",
            hint="cert and key are files in PEM form; `password` opens an encrypted key",
        ) from None
