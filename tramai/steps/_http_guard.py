"""Where `http` may connect: the rules of a URL, and the rules of an address.

Host names are resolved once, here; the connection goes to that IP address with the name as TLS server name, so a name
server that answers differently a second time (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from ..step import StepError

if TYPE_CHECKING:
    import ipaddress
    import ssl

    import httpx

CONNECT = 10.0
"""Seconds for one attempt to connect to one address."""

_LONG = 20_000
"""Characters that may be more than httpx takes (65,536) once they are escaped."""
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

# IANA special-purpose registries (RFC 6890 and successors), written out because `ipaddress.is_private` answers
# differently from one Python release to the next.
_V4 = {
    "0.0.0.0/8": "unspecified",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "carrier-grade NAT",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "cloud metadata",
    "169.254.0.0/16": "link-local, where clouds keep their metadata",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "reserved for documentation",
    "192.88.99.0/24": "reserved",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "reserved for benchmarks",
    "198.51.100.0/24": "reserved for documentation",
    "203.0.113.0/24": "reserved for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_V6 = {
    "::/128": "unspecified",
    "::1/128": "loopback",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "ff00::/8": "multicast",
    "2001::/23": "reserved",
    "2001:db8::/32": "reserved for documentation",
    "3fff::/20": "reserved for documentation",
}
# Ranges that carry an IPv4 address, and the bit at which it starts: mapped, compatible, NAT64, 6to4.
_CARRIERS = (("::ffff:0:0/96", 96), ("::/96", 96), ("64:ff9b::/96", 96), ("2002::/16", 16))


def reason(address: str) -> str | None:
    """Why a public service cannot be at this IP address (`loopback`, `private`, …); None when it can."""
    import ipaddress

    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return next((why for network, why in _v4() if found in network), None)
    why = next((why for network, why in _v6() if found in network), None)
    if why is not None:
        return why
    for network, start in _carriers():
        if found in network:
            inner = (int(found) >> (128 - start - 32)) & 0xFFFFFFFF
            return reason(str(ipaddress.IPv4Address(inner)))
    return None if found in ipaddress.IPv6Network("2000::/3") else "reserved"


@cache
def _v4() -> tuple[tuple[ipaddress.IPv4Network, str], ...]:
    import ipaddress

    return tuple((ipaddress.IPv4Network(text), why) for text, why in _V4.items())


@cache
def _v6() -> tuple[tuple[ipaddress.IPv6Network, str], ...]:
    import ipaddress

    return tuple((ipaddress.IPv6Network(text), why) for text, why in _V6.items())


@cache
def _carriers() -> tuple[tuple[ipaddress.IPv6Network, int], ...]:
    import ipaddress

    return tuple((ipaddress.IPv6Network(text), start) for text, start in _CARRIERS)


def host_problem(host: str) -> str | None:
    """What is wrong with a host as it stands in a URL; None when nothing is. `[…]` around IPv6 is left off."""
    host = host.lower()
    if not host:
        return "has no host"
    if ":" in host:
        return None if is_address(host) else f"has the host [{host}], which is no IPv6 address"
    if host.endswith("."):
        return f"has the host {host} with a dot at its end"
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        if is_address(host):
            return None
        return f"has the host {host}: write an IPv4 address as four decimal numbers"
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        return f"has the host {host[:80]!r}, which is no host name"
    return None


def is_address(text: str) -> bool:
    """Whether a host is an IP address and no name."""
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def parse(text: str) -> httpx.URL:
    """A URL that may be requested: http or https, a plain host, no user-info. StepError `refused` says why not."""
    import httpx

    try:
        url = httpx.URL(text).copy_with(fragment=None)
        url.copy_with(host=url.host)  # as `send` will: it may have become too long by its escapes
    except (httpx.InvalidURL, ValueError):  # idna raises UnicodeError, a ValueError
        raise _refused("is no URL" if len(text) < _LONG else "is too long", text) from None
    if url.scheme not in ("http", "https"):
        what = f"has the scheme {url.scheme[:20]}" if url.scheme else "has no scheme"
        raise _refused(f"{what}: http and https are requested, nothing else", text)
    if url.userinfo or "@" in url.netloc.decode("ascii"):
        raise _refused("has a user name or password in it: use `auth`", text)
    problem = host_problem(url.raw_host.decode("ascii"))
    if problem is None and url.port is not None and not 0 < url.port < 65536:
        problem = f"has the port {url.port}"
    if problem is not None:
        raise _refused(problem, text)
    return url


def _refused(problem: str, text: str) -> StepError:
    return StepError("refused", f"the URL {shown(text)} {problem}")


def shown(url: httpx.URL | str, *, secret: bool = False) -> str:
    """A URL for people: without user-info, query and fragment; `secret`: without its path too."""
    if isinstance(url, str):
        # A text that may be no URL at all: what stands before an @ may be a password, whatever it contains.
        text = re.split(r"[?#]", re.sub(r"^([^:/]*:)?(//)?.*@", r"\1\2", url, flags=re.DOTALL), maxsplit=1)[0]
    else:
        text = str(url.copy_with(userinfo=b"", query=None, fragment=None))
    if secret:
        text = re.sub(r"^([^/]*//[^/]*)/.+$", r"\1/…", text, flags=re.DOTALL)
    text = "".join(character if character.isprintable() else "�" for character in text)
    return text if len(text) <= 200 else text[:199] + "…"


async def addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Every address of the host, in the system's order, all of them permitted."""
    found = [host] if is_address(host) else await resolve(host, port)
    if not allow_private:
        for address in found:
            why = reason(address)
            if why is not None:
                raise not_public(address if address == host else f"{host}, which is {address},", why)
    return found


def not_public(named: str, why: str) -> StepError:
    """The refusal of an address that is not public."""
    return StepError(
        "refused",
        f"{named} is not a public address ({why})",
        hint="set allow_private: true if this workflow may reach private addresses",
    )


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host name, in the system's order; StepError `network` when it has none."""
    import asyncio
    import contextlib
    import socket
    import threading

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[list[str] | Exception] = loop.create_future()

    def deliver(found: list[str] | Exception) -> None:
        if not ended.done():
            ended.set_result(found)

    def body() -> None:
        found: list[str] | Exception
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except (OSError, UnicodeError) as error:
            found = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, found)

    # A thread of its own, left behind on a timeout: the loop's pool would be joined at the end of the run.
    threading.Thread(target=body, name="tramai-resolve", daemon=True).start()
    found = await ended
    if isinstance(found, Exception):
        text = getattr(found, "strerror", None) or "it is no host name"
        raise StepError("network", f"cannot resolve the host {host}: {text}")
    if not found:
        raise StepError("network", f"the host {host} has no address")
    return found


@cache
def tls(wanted: bool) -> ssl.SSLContext:
    """One context for the process: reading the certificates costs 40 ms. SSL_CERT_FILE and SSL_CERT_DIR count.

    Plain http gets an empty context that verifies everything and so could connect to nothing.
    """
    import ssl

    import httpx

    return httpx.create_ssl_context(trust_env=True) if wanted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
