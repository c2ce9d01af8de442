"""The transport of `http`: it connects to the very address that was checked, or to the proxy that was named.

No cookies, no redirects, no retries of its own, and nothing of the environment but the places of certificates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..permits import Permits, guard_host, host_allowed
from ..step import StepError
from . import _http_guard as guard
from ._http_route import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    import httpx

Origin = tuple[str, bytes, int]


def origin(url: httpx.URL) -> Origin:
    """What a browser calls the origin: scheme, host and port."""
    return url.scheme, url.raw_host, url.port or (443 if url.scheme == "https" else 80)


class Wire:
    """Sends single requests to checked addresses, by the `route` that the settings name.

    `home` is the origin of the first URL: a client certificate is shown there and nowhere else.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        allow_hosts: tuple[str, ...] | None,
        permits: tuple[Permits, ...] = (),
        route: Route,
        home: Origin,
    ) -> None:
        self._allow_private = allow_private
        self._permits = permits
        self._allow_hosts = allow_hosts
        self._route = route
        self._home = home
        self._transports: dict[tuple[Origin, bool], httpx.AsyncHTTPTransport] = {}

    async def __aenter__(self) -> Wire:
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    async def send(
        self,
        method: str,
        url: httpx.URL,
        headers: tuple[tuple[str, bytes], ...],
        content: bytes | AsyncIterable[bytes] | None,
    ) -> httpx.Response:
        """The answer, its body still unread; the caller closes it. StepError for what may not be; httpx's otherwise."""
        import httpx

        host = url.raw_host.decode("ascii")
        if self._allow_hosts is not None and not host_allowed(host, self._allow_hosts):
            raise StepError(
                "refused", f"the host {host} is not in allow_hosts", hint=f"add {host} to allow_hosts if it is meant"
            )
        guard_host(self._permits, host)
        proxied = self._route.proxied(host)
        named = [(name.encode("ascii"), value) for name, value in headers]
        request = httpx.Request(method, url, headers=named, content=content)
        if proxied:
            self._without_address(host)
            request.extensions = {"timeout": {"connect": guard.CONNECT}}
            return await (await self._transport(url, proxied=True)).handle_async_request(request)
        places = await guard.addresses(host, origin(url)[2], allow_private=self._allow_private)
        # The header `Host` and the TLS server name keep the name; only the connection goes to the address.
        extensions: dict[str, Any] = {"sni_hostname": host, "timeout": {"connect": guard.CONNECT}}
        failure: httpx.TransportError | None = None
        for address in places:
            direct = httpx.Request(
                method, url.copy_with(host=address), headers=request.headers, content=content, extensions=extensions
            )
            try:
                return await (await self._transport(url, proxied=False)).handle_async_request(direct)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # a name without addresses does not resolve
        raise failure

    def _without_address(self, host: str) -> None:
        """What can be said of a host that a proxy resolves: an address that is written out, and the proxy itself."""
        if self._allow_private:
            return
        if guard.is_address(host):
            why = guard.reason(host)
        else:
            why = "loopback" if host == "localhost" or host.endswith(".localhost") else None
        if why is not None:
            raise guard.not_public(host, why)

    async def _transport(self, url: httpx.URL, *, proxied: bool) -> httpx.AsyncHTTPTransport:
        """That of an origin, and of no other: a connection is found again by its address alone, and what is at its
        other end was verified for one name. Beside that of `home` there is one."""
        import httpx

        key = (origin(url), proxied)
        if key not in self._transports:
            for other in [one for one in self._transports if one[0] != self._home]:
                await self._transports.pop(other).aclose()
            self._transports[key] = httpx.AsyncHTTPTransport(
                verify=self._route.context(secure=url.scheme == "https", shown=key[0] == self._home),
                trust_env=False,
                proxy=self._route.hop() if proxied else None,
            )
        return self._transports[key]
