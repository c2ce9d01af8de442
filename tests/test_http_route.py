"""`http`: proxies, authorities, and certificates of our own, against real ones on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tramai.errors import ConfigurationError, Pointer
from tramai.permits import Permits
from tramai.step import StepError
from tramai.steps import _http_route
from tramai.steps.http import Http

from .http_certificates import Authority
from .http_proxy import Proxy, proxying
from .http_servers import Asked, Server, answer, serving
from .step_context import StepContext, made, result_of

OK = "https://example.com/"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def context(folder: Path | None = None, scope: Any = None, **http: Any) -> StepContext:
    """A run with `[http]` in its configuration."""
    ctx = StepContext(scope)
    ctx.cwd = str(folder) if folder is not None else ctx.cwd
    ctx.http = http
    return ctx


@contextlib.asynccontextmanager
async def both(password: str | None = None, **tls: ssl.SSLContext | None) -> AsyncIterator[tuple[Server, Proxy]]:
    """A server, and a proxy that is asked for it. `tls`: of the `server`, of the `proxy`."""
    async with (
        serving(lambda asked: answer(200, b"there"), tls=tls.get("server")) as server,
        proxying(password, tls=tls.get("proxy")) as proxy,
    ):
        yield server, proxy


def refused(step: Http, ctx: StepContext | None = None) -> StepError:
    with pytest.raises(StepError) as caught:
        asyncio.run(result_of(step, ctx))
    return caught.value


# Proxies.


@pytest.mark.parametrize("configured", [True, False])
def test_a_request_in_the_clear_is_forwarded_by_its_name(configured: bool) -> None:
    async def go() -> tuple[Any, list[Any], list[Asked]]:
        async with both() as (server, proxy):
            url = f"http://127.0.0.1:{proxy.port}"
            settings = {} if configured else {"proxy": url}
            step = made(Http, get=f"http://some.where.test:{server.port}/x?y=1", **settings)
            result = await result_of(step, context(**({"proxy": url} if configured else {})))
            return result, proxy.asked, server.asked

    result, through, asked = asyncio.run(go())
    assert result["body"] == "there"
    assert through[0][0].startswith("GET http://some.where.test:")
    assert (asked[0].path, asked[0].headers["host"].startswith("some.where.test:")) == ("/x?y=1", True)


@pytest.mark.parametrize("proxy_tls", [False, True])
def test_a_request_over_tls_goes_through_a_tunnel_and_is_verified_at_its_end(
    proxy_tls: bool, authority: Authority, tmp_path: Path
) -> None:
    async def go(bundle: str | None) -> tuple[list[Any], list[Asked]]:
        tls = {"server": authority.server(), "proxy": authority.server() if proxy_tls else None}
        async with both("pa:ss/@ü", **tls) as (server, proxy):
            step = made(
                Http,
                get=f"https://localhost:{server.port}/secret",
                headers={"Authorization": "Bearer t"},
                proxy=f"{'https' if proxy_tls else 'http'}://localhost:{proxy.port}",
                proxy_auth=["user", "${{ secrets.P }}"],
                allow_private=True,
                **({"ca_bundle": bundle} if bundle else {}),
            )
            result = await result_of(step, context(tmp_path, {"secrets": {"P": "pa:ss/@ü"}}))
            assert result["body"] == "there"
            return proxy.asked, server.asked

    through, asked = asyncio.run(go(authority.bundle.name))
    assert through[0][0].startswith("CONNECT localhost:")
    assert "authorization" not in through[0][1]
    assert asked[0].headers["authorization"] == "Bearer t"
    assert "proxy-authorization" not in asked[0].headers
    with pytest.raises(StepError, match="certificate verify failed"):
        asyncio.run(go(None))


@pytest.mark.parametrize("secure", [True, False])
def test_a_proxy_that_refuses_is_named_and_its_password_is_not(secure: bool) -> None:
    async def go() -> None:
        async with both("right") as (server, proxy):
            step = made(
                Http,
                get=f"http{'s' if secure else ''}://some.test:{server.port}/",
                proxy=f"http://127.0.0.1:{proxy.port}",
                proxy_auth=["user", "${{ secrets.P }}"],
            )
            await result_of(step, context(scope={"secrets": {"P": "wrong-password"}}))

    with pytest.raises(StepError, match="407") as caught:
        asyncio.run(go())
    assert caught.value.type == ("network" if secure else "http.407")
    assert "wrong-password" not in caught.value.message


def test_a_proxy_that_is_not_there_is_a_network_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = refused(made(Http, get="http://some.test/", proxy=url))
    assert (error.type, "no connection" in error.message) == ("network", True)


def test_the_hosts_of_no_proxy_are_asked_directly_and_checked() -> None:
    async def go(**settings: Any) -> tuple[list[Any], list[Asked]]:
        async with both() as (server, proxy):
            configured = {"proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": ("localhost", "*.corp.test")}
            await result_of(made(Http, get=f"http://localhost:{server.port}/", **settings), context(**configured))
            return proxy.asked, server.asked

    through, asked = asyncio.run(go(allow_private=True))
    assert (through, len(asked)) == ([], 1)
    with pytest.raises(StepError, match="is not a public address"):
        asyncio.run(go())


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "localhost", "x.localhost"])
def test_an_address_that_is_written_out_is_refused_behind_a_proxy_too(host: str) -> None:
    async def go() -> list[Any]:
        async with proxying() as proxy:
            with pytest.raises(StepError, match="is not a public address"):
                await result_of(made(Http, get=f"http://{host}/", proxy=f"http://127.0.0.1:{proxy.port}"))
            return proxy.asked

    assert asyncio.run(go()) == []


def test_hosts_are_listed_and_permitted_behind_a_proxy_as_without() -> None:
    url = "http://127.0.0.1:9"
    assert "allow_hosts" in refused(made(Http, get="http://a.test/", allow_hosts=["b.test"], proxy=url)).message
    ctx = context()
    ctx.permits = (Permits(http=("a.test",)),)
    assert "127.0.0.1 is not permitted" in refused(made(Http, get="http://a.test/", proxy=url), ctx).message
    ctx = context(proxy=url)
    ctx.permits = (Permits(http=("b.test",)),)
    assert "a.test is not permitted" in refused(made(Http, get="http://a.test/"), ctx).message


def test_the_proxy_of_the_step_is_taken_instead_of_the_configured_one() -> None:
    async def go() -> tuple[int, int]:
        async with both() as (server, proxy), proxying() as other:
            step = made(Http, get=f"http://a.test:{server.port}/", proxy=f"http://127.0.0.1:{proxy.port}")
            await result_of(step, context(proxy=f"http://127.0.0.1:{other.port}", proxy_auth=("u", "p")))
            assert "proxy-authorization" not in proxy.asked[0][1]
            return len(proxy.asked), len(other.asked)

    assert asyncio.run(go()) == (1, 0)


def test_a_variable_that_is_not_used_is_told_when_there_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _http_route.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        step = made(Http, get=f"http://127.0.0.1:{unused.getsockname()[1]}/", allow_private=True)
        assert refused(step).hint is None
        monkeypatch.setenv("https_proxy", "http://user:pw@proxy.test:3128")
        error = refused(step)
    assert error.hint is not None
    assert "https_proxy is set" in error.hint
    assert "pw" not in error.hint


# Authorities, and our own certificate.


def test_an_authority_counts_where_it_is_named(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")

    async def go(configured: Any = None, **settings: Any) -> Any:
        async with serving(lambda asked: answer(200, b"safe"), tls=authority.server()) as server:
            step = made(Http, get=f"https://localhost:{server.port}/", allow_private=True, **settings)
            return (await result_of(step, context(tmp_path, **(configured or {}))))["body"]

    assert asyncio.run(go(ca_bundle="authority.pem")) == "safe"
    assert asyncio.run(go({"ca_bundle": os.fspath(authority.bundle)})) == "safe"
    assert asyncio.run(go({"ca_bundle": os.fspath(other.bundle)}, ca_bundle="authority.pem")) == "safe"
    for wrong in ({}, {"ca_bundle": "other.pem"}):
        with pytest.raises(StepError, match="certificate verify failed"):
            asyncio.run(go(**wrong))


def test_a_connection_that_was_verified_for_one_name_is_used_for_no_other(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = socket.getaddrinfo

    def here(host: Any, *args: Any, **named: Any) -> Any:
        return real("127.0.0.1" if host in ("localhost", "other.test") else host, *args, **named)

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                asked.append(head.partition("host: ")[2].partition(":")[0])
                more = f"<https://other.test:{port}/>; rel=next"
                writer.write(answer(200, b"[1]", connection="keep-alive", content_type="application/json", link=more))

    async def go() -> Any:
        nonlocal port
        listener = await asyncio.start_server(keep, "127.0.0.1", 0, ssl=authority.server())
        port = listener.sockets[0].getsockname()[1]
        link = f"<https://localhost:{port}/>; rel=next"
        first = answer(200, b"[0]", content_type="application/json", link=link)
        pages = {"next": "${{ result.links.next }}", "items": "${{ result.body }}"}
        async with listener, serving(lambda asked: first) as home:
            step = made(Http, get=home.url, allow_private=True, ca_bundle="authority.pem", paginate=pages)
            return await result_of(step, context(tmp_path))

    port = 0
    monkeypatch.setattr(socket, "getaddrinfo", here)
    with pytest.raises(StepError, match="certificate verify failed"):
        asyncio.run(go())
    assert asked == ["localhost"]


def test_our_certificate_is_shown_to_the_first_origin_only(authority: Authority, tmp_path: Path) -> None:
    authority.issue("client", password="opens")
    seen: list[Any] = []

    async def go(**certificate: str) -> Any:
        optional = authority.server(asks=True)
        optional.verify_mode = ssl.CERT_OPTIONAL
        far = Server(lambda asked: answer(200, b"far"))

        async def look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(writer.get_extra_info("peercert"))
            await far.serve(reader, writer)

        listener = await asyncio.start_server(look, "127.0.0.1", 0, ssl=optional)
        port = listener.sockets[0].getsockname()[1]
        there = answer(302, location=f"https://localhost:{port}/")
        async with listener, serving(lambda asked: there, tls=authority.server(asks=True)) as near:
            step = made(
                Http,
                get=f"https://localhost:{near.port}/",
                client_cert=certificate,
                ca_bundle="authority.pem",
                follow_redirects=True,
                allow_private=True,
            )
            return (await result_of(step, context(tmp_path, {"secrets": {"K": "opens"}})))["body"]

    given = {"cert": "client.pem", "key": "client.key", "password": "${{ secrets.K }}"}
    assert asyncio.run(go(**given)) == "far"
    assert [bool(certificate) for certificate in seen] == [False]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"ca_bundle": "none.pem"}, "ca_bundle: .*No such file"),
        ({"ca_bundle": "client.key"}, "ca_bundle: .*no certificate"),
        ({"client_cert": {"cert": "none.pem"}}, "client_cert: .*no such file"),
        ({"client_cert": {"cert": "client.pem"}}, "client_cert: .* cannot be used"),
        ({"client_cert": {"cert": "client.pem", "key": "client.key"}}, "client_cert: .* cannot be used"),
        ({"client_cert": {"cert": "client.pem", "key": "client.key", "password": "no"}}, "client_cert: .* cannot"),
        ({"ca_bundle": "${{ inputs.path }}"}, "out of the folder"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_told(
    settings: dict[str, Any], why: str, authority: Authority, tmp_path: Path
) -> None:
    authority.issue("client", password="opens")

    async def go() -> None:
        async with serving(lambda asked: answer(200), tls=authority.server()) as server:
            step = made(Http, get=f"https://localhost:{server.port}/", allow_private=True, **settings)
            await result_of(step, context(tmp_path, {"inputs": {"path": "/etc/ssl/cert.pem"}}))

    with pytest.raises(StepError, match=why) as caught:
        asyncio.run(go())
    assert caught.value.type == "refused"


# What a file and the configuration may say.


@pytest.mark.parametrize(
    ("settings", "pointer"),
    [
        ({"proxy": "proxy.test:3128"}, ("proxy",)),
        ({"proxy": "socks5://proxy.test"}, ("proxy",)),
        ({"proxy": "http://"}, ("proxy",)),
        ({"proxy": "http://me:pw@proxy.test"}, ("proxy",)),
        ({"proxy": "http://proxy.test/path"}, ("proxy",)),
        ({"proxy": "http://proxy.test:99999"}, ("proxy",)),
        ({"proxy": "http://${{ inputs.proxy }}"}, ("proxy",)),
        ({"proxy_auth": ["a", "${{ secrets.P }}"]}, ("proxy_auth",)),
        ({"proxy": "http://proxy.test", "proxy_auth": ["a", "literal"]}, ("proxy_auth",)),
        ({"headers": {"Proxy-Authorization": "Basic x"}}, ("headers", "Proxy-Authorization")),
    ],
)
def test_a_mistake_is_found_before_the_run(settings: dict[str, Any], pointer: Pointer) -> None:
    found = made(Http, get=OK, **settings).check()
    code = "TRM323" if "headers" in settings else "TRM349"
    assert [(finding.code, finding.pointer) for finding in found] == [(code, pointer)]
    assert "pw" not in found[0].message


def configured(folder: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    from tramai.cli import _settings

    (folder / "tramai.toml").write_text(table)
    monkeypatch.chdir(folder)
    return _settings.gather({}, {"XDG_CONFIG_HOME": str(folder / "none")}).http


def test_the_configuration_says_it_for_every_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = (
        '[http]\nproxy = "http://proxy.test:3128"\nproxy_auth = ["me", "${{ secrets.PROXY }}"]\n'
        'no_proxy = ["localhost", "*.corp.test", "10.0.0.1"]\nca_bundle = "certs/ca.pem"\n'
    )
    found = configured(tmp_path, table, monkeypatch)
    assert found["proxy"] == "http://proxy.test:3128"
    assert found["ca_bundle"] == str(tmp_path / "certs/ca.pem")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('[http]\nproxi = "http://x"', "proxi"),
        ('[http]\nproxy = "x:1"', "is no proxy"),
        ('[http]\nproxy = "http://me:pw@x"', "stand in `proxy_auth`"),
        ('[http]\nproxy = "http://x"\nproxy_auth = ["me", "pw"]', "may not stand in a file"),
        ('[http]\nproxy_auth = ["me", "${{ secrets.P }}"]', "needs a `proxy`"),
        ('[http]\nno_proxy = ["http://x"]', "is no host"),
        ('[http]\nca_bundle = " "', "is empty"),
        ("http = 1", "must be a table"),
    ],
)
def test_a_mistake_in_the_configuration_is_refused_with_its_place(
    table: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        configured(tmp_path, table + "\n", monkeypatch)
    assert caught.value.position is not None
    assert caught.value.hint


def test_a_run_takes_the_way_of_the_configuration(tmp_path: Path) -> None:
    from tramai import engine, plan, workflow
    from tramai.stores import open_store

    async def go() -> tuple[str, int]:
        async with both("right") as (server, proxy):
            (tmp_path / "w.yaml").write_text(
                "tramai: 1\nname: way\nsecrets: {P: {env: P}}\nsteps:\n"
                f"  - {{id: a, http: {{get: 'http://some.test:{server.port}/'}}}}\n"
                "outputs: {body: '${{ steps.a.output.body }}'}\n"
            )
            way = {"proxy": f"http://127.0.0.1:{proxy.port}", "proxy_auth": ["user", "${{ secrets.P }}"]}
            options = engine.Options(http=way, secrets={"P": "right"})
            made_plan = plan.of(workflow.load(str(tmp_path / "w.yaml")))
            run = lambda: engine.run(made_plan, {}, store=open_store("memory:"), options=options)  # noqa: E731
            result = await asyncio.to_thread(run)
            return result.outputs["body"], len(proxy.asked)

    assert asyncio.run(go()) == ("there", 1)
