"""`http` against real servers on loopback."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import socket
import ssl
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tramai import engine, inputs, plan, workflow
from tramai.errors import Pointer
from tramai.permits import host_allowed
from tramai.step import Replay, StepError
from tramai.steps import _http_body, _http_guard
from tramai.steps._http_exchange import retry_after
from tramai.steps.http import Http
from tramai.stores import open_store

from .http_servers import Asked, answer, background, failure, fetch, serving
from .step_context import StepContext, made, result_of, run

EXAMPLE = Path(__file__).parent.parent / "workflows" / "http_health.yaml"
DATA = Path(__file__).parent / "data" / "http"


def run_example(given: dict[str, Any]) -> engine.Result:
    """A run of workflows/http_health.yaml in memory."""
    made_plan = plan.of(workflow.load(str(EXAMPLE)))
    return engine.run(made_plan, inputs.bind(made_plan.workflow.inputs, given), store=open_store("memory:"))


# What is sent.


def test_a_get_returns_status_headers_body_and_url() -> None:
    result, asked = fetch(answer(200, b'{"n": 1}', content_type="application/json", X_Two="a"), path="/x?y=1#part")
    assert result["status"] == 200
    assert result["body"] == {"n": 1}
    assert result["headers"]["x-two"] == "a"
    assert result["url"].endswith("/x?y=1")
    assert (asked[0].method, asked[0].path) == ("GET", "/x?y=1")
    assert asked[0].headers["user-agent"].startswith("tramai/")


def test_query_parameters_are_added_encoded_and_repeated() -> None:
    query = {"tag": ["a b", "ü&"], "n": "${{ inputs.n }}", "on": True, "many": "${{ inputs.list }}"}
    scope = {"inputs": {"n": 3, "list": ["x", 2]}}
    _, asked = fetch(answer(204), path="/p?first=1", query=query, scope=scope)
    assert asked[0].path == "/p?first=1&tag=a+b&tag=%C3%BC%26&n=3&on=true&many=x&many=2"


@pytest.mark.parametrize("value", [None, {"a": 1}, [[1]]])
def test_a_query_parameter_that_is_no_text_is_an_error(value: Any) -> None:
    error = failure(answer(204), query={"x": "${{ inputs.x }}"}, scope={"inputs": {"x": value}})
    assert error.type == "expression"
    assert "query.x" in error.message


def test_json_is_sent_as_json_with_exact_integers() -> None:
    data = {"id": 2**80, "name": "é", "from": "${{ inputs.a }}"}
    _, asked = fetch(answer(204), "post", json=data, scope={"inputs": {"a": [1, None]}})
    assert json.loads(asked[0].body) == {"id": 2**80, "name": "é", "from": [1, None]}
    assert asked[0].headers["content-type"] == "application/json"


def test_json_null_is_a_body() -> None:
    _, asked = fetch(answer(204), "post", json=None)
    assert asked[0].body == b"null"


def test_a_form_is_sent_as_a_form() -> None:
    _, asked = fetch(answer(204), "post", form={"a": "1 2", "b": ["x", "y"]})
    assert asked[0].body == b"a=1+2&b=x&b=y"
    assert asked[0].headers["content-type"] == "application/x-www-form-urlencoded"


def test_a_body_is_sent_as_it_is_with_the_type_that_is_given() -> None:
    _, asked = fetch(answer(204), "put", body="<é/>", headers={"content-type": "application/xml"})
    assert asked[0].body == "<é/>".encode()
    assert asked[0].headers["content-type"] == "application/xml"


def test_a_post_that_may_be_repeated_sends_the_key_of_its_step() -> None:
    _, asked = fetch(answer(201), "post", policy=Replay.IDEMPOTENT, json=1)
    assert asked[0].headers["idempotency-key"] == "key"
    _, asked = fetch(answer(201), "post", policy=Replay.IDEMPOTENT, json=1, headers={"idempotency-key": "mine"})
    assert asked[0].headers["idempotency-key"] == "mine"
    _, asked = fetch(answer(201), "post", json=1)
    assert "idempotency-key" not in asked[0].headers


def test_basic_and_bearer_set_the_authorization_header() -> None:
    _, asked = fetch(answer(204), auth={"basic": ["me", "p:ä"]})
    assert base64.b64decode(asked[0].headers["authorization"].removeprefix("Basic ")) == "me:p:ä".encode()
    _, asked = fetch(answer(204), auth={"bearer": "${{ secrets.T }}"}, scope={"secrets": {"T": "abc"}})
    assert asked[0].headers["authorization"] == "Bearer abc"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00"])
def test_a_header_value_cannot_end_its_line(value: str) -> None:
    error = failure(answer(204), headers={"X-A": "${{ inputs.v }}"}, scope={"inputs": {"v": value}})
    assert error.type == "expression"
    assert "X-A" in error.message


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    result, _ = fetch(answer(204))
    assert result["status"] == 204


# Empty answers.


@pytest.mark.parametrize(
    "whole",
    [
        answer(204),
        answer(200, b"", content_type="application/json"),
        b"HTTP/1.1 201 Created\r\nconnection: close\r\n\r\n",
        b"HTTP/1.1 205 Reset\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    ],
)
def test_an_empty_answer_is_null(whole: bytes) -> None:
    result, _ = fetch(whole)
    assert result["body"] is None


def test_a_head_request_has_no_body_whatever_its_length_says() -> None:
    whole = answer(200, b"", content_length="50000000", content_type="application/json", content_encoding="gzip")
    result, asked = fetch(whole, "head")
    assert result["body"] is None
    assert result["headers"]["content-length"] == "50000000"
    assert asked[0].method == "HEAD"


# Statuses.


def test_a_status_that_is_not_expected_fails_with_it_and_the_body() -> None:
    error = failure(answer(404, b"no such thing", content_type="text/plain"), path="/x?token=abc")
    assert error.type == "http.404"
    assert error.details == {"status": 404, "body": "no such thing"}
    assert "404 Not Found" in error.message
    assert "token" not in error.message


def test_the_body_of_an_error_is_cut() -> None:
    error = failure(answer(500, b"x" * 3_000_000), max_response="1KiB")
    assert error.type == "http.500"
    assert error.details["body"] == "x" * 2000


def test_an_error_keeps_its_status_when_its_body_breaks_off() -> None:
    assert failure(answer(502, b"abc", content_length="500")).type == "http.502"
    assert failure(answer(502, b"abc", content_encoding="gzip")).type == "http.502"


@pytest.mark.parametrize("expected", [404, "4xx", ["2xx", 404], [404]])
def test_expected_statuses_are_numbers_or_classes(expected: Any) -> None:
    result, _ = fetch(answer(404, b"gone"), expect_status=expected)
    assert result["status"] == 404
    assert result["body"] == "gone"


def test_a_success_that_is_not_expected_fails_too() -> None:
    assert failure(answer(200), expect_status=[201, "3xx"]).type == "http.200"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2", 2.0),
        ("0", 0.0),
        (" 86400 ", 86400.0),
        (formatdate(1_000_003, usegmt=True), 3.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("Mon, 12 Jan 1970 13:46:43 -0000", 3.0),
        ("garbage", None),
        ("Mon, garbage", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("9" * 400, None),
        ("٣", None),
        ("Mon, 99 Jan 99999 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_never_raises(value: str, expected: float | None) -> None:
    assert retry_after(value, 1_000_000.0) == expected


@given(st.text())
def test_any_retry_after_is_a_wait_or_nothing(value: str) -> None:
    wait = retry_after(value, 0.0)
    assert wait is None or wait >= 0


def test_retry_after_reaches_the_error() -> None:
    assert failure(answer(429, retry_after="7")).retry_after == 7.0
    assert failure(answer(503, retry_after=formatdate(time.time() + 3600, usegmt=True))).retry_after is not None
    assert failure(answer(503, retry_after="soon")).retry_after is None


@pytest.mark.parametrize("value", ["0", "Mon, 12 Jan 1970 13:46:43 GMT"])
def test_a_retry_waits_as_the_server_asks_and_not_as_the_policy_says(value: str, tmp_path: Path) -> None:
    with background(answer(429, retry_after=value), answer(200, b"x")) as url:
        assert run_retrying(tmp_path, url, "delay: 1h").outputs == {"status": 200, "attempts": 2}


@pytest.mark.parametrize("value", ["garbage", "-1", ""])
def test_a_wait_that_cannot_be_read_leaves_the_policy_as_it_is(value: str, tmp_path: Path) -> None:
    with background(answer(503, retry_after=value), answer(200, b"x")) as url:
        result = run_retrying(tmp_path, url, "delay: 1ms, on: [http.5xx]")
    assert result.outputs == {"status": 200, "attempts": 2}


def test_a_wait_longer_than_the_policy_allows_fails_at_once(tmp_path: Path) -> None:
    with background(answer(429, retry_after="86400"), answer(200, b"x")) as url:
        result = run_retrying(tmp_path, url, "delay: 1ms, on: [rate_limited]")
    assert result.status == "failed"
    assert (result.error["type"], result.error["attempt"]) == ("http.429", 1)


def run_retrying(folder: Path, url: str, policy: str) -> engine.Result:
    """A run of one request with a retry policy."""
    file = folder / "retrying.yaml"
    file.write_text(
        f"tramai: 1\nname: retrying\nsteps:\n  - id: ask\n    http: {{get: '{url}', allow_private: true}}\n"
        f"    retry: {{max_attempts: 2, {policy}}}\n"
        "outputs: {status: '${{ steps.ask.output.status }}', attempts: '${{ steps.ask.attempts }}'}\n"
    )
    return engine.run(plan.of(workflow.load(str(file))), {}, store=open_store("memory:"))


# Bodies.


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        ("é".encode(), "text/plain", "é"),
        ("é".encode(), "", "é"),
        (b"\xe9", "text/plain; charset=iso-8859-1", "é"),
        (b"\xe9", 'text/plain; Charset="ISO-8859-1"', "é"),
        (b"\xe9", "text/plain", "�"),
        ("é".encode(), "text/plain; charset=bogus", "é"),
        ("é".encode(), "text/plain; charset=base64", "é"),
        ("é".encode(), "text/plain; charset=undefined", "é"),
        ("\ufeffé".encode(), "text/plain", "é"),
        ("é".encode("utf-16"), "text/plain", "é"),
        (b"<a/>", "application/atom+xml", "<a/>"),
        (b"a: 1", "application/yaml", "a: 1"),
        ('{"a": "é"}'.encode("utf-16"), "application/json", {"a": "é"}),
        ('{"a": "é"}'.encode("utf-16-le"), "application/json", {"a": "é"}),
        ('{"a": "é"}'.encode("utf-32"), "application/json", {"a": "é"}),
        (b'\xef\xbb\xbf{"a": 1}', "application/json", {"a": 1}),
        (b'"\xe9"', "application/json; charset=latin-1", "é"),
        (b'{"type": "x"}', "application/problem+json; charset=utf-8", {"type": "x"}),
        (b"[18446744073709551617, 0.1]", "application/vnd.github.v3+json", [2**64 + 1, 0.1]),
        (b'{"a": 1}', "text/plain", '{"a": 1}'),
        (b"\x89PNG\x00", "image/png", {"base64": "iVBORwA="}),
        (b"plain", "application/octet-stream", {"base64": "cGxhaW4="}),
    ],
)
def test_a_body_is_decoded_by_its_type(body: bytes, kind: str, expected: Any) -> None:
    assert _http_body.decode(body, kind) == expected
    result, _ = fetch(answer(200, body, **({"content_type": kind} if kind else {})))
    assert result["body"] == expected


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": }',
        b"<html>",
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b'"\xff"',
        b" ",
        b"[" * 100_000,
        b"[" * 500 + b"]" * 500,
        b"1" * 5000,
        b'{"a": 1} x',
    ],
)
def test_a_body_that_says_json_and_is_not_fails_without_showing_it(body: bytes) -> None:
    error = failure(answer(200, body, content_type="application/json"))
    assert error.type == "invalid_output"
    assert "JSON" in error.message
    assert len(error.message) < 400


def test_thirty_megabytes_of_text_are_decoded_at_once() -> None:
    began = time.monotonic()
    assert len(_http_body.decode("é".encode() * 15_000_000, "text/plain")) == 15_000_000
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", lambda data: gzip.compress(data[:3]) + gzip.compress(data[3:])),
        ("deflate", zlib.compress),
        ("Deflate", lambda data: zlib.compress(data)[2:-4]),
        ("identity", bytes),
    ],
)
def test_a_compressed_body_is_inflated(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    text = "".join(f"{number}é," for number in range(30_000))
    result, asked = fetch(answer(200, pack(text.encode()), content_encoding=encoding, content_type="text/csv"))
    assert result["body"] == text
    assert asked[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("body", "encoding", "kind"),
    [
        (b"hello", "gzip", "invalid_output"),
        (gzip.compress(b"hello" * 100, mtime=0)[:-12], "gzip", "network"),
        (b"hello", "br", "invalid_output"),
        (b"hello", "gzip, gzip", "invalid_output"),
    ],
)
def test_a_body_that_cannot_be_inflated_fails(body: bytes, encoding: str, kind: str) -> None:
    assert failure(answer(200, body, content_encoding=encoding)).type == kind


@pytest.mark.parametrize(("size", "members"), [(1 << 20, 1024), (200 << 20, 1)], ids=["many members", "one member"])
def test_a_gzip_bomb_stops_at_the_limit(size: int, members: int) -> None:
    bomb = gzip.compress(bytes(size), compresslevel=1) * members
    tracemalloc.start()
    try:
        error = failure(answer(200, bomb, content_encoding="gzip"), max_response="4MiB")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.type == "limit"
    assert "max_response (4MiB)" in error.message
    assert peak < 50 << 20


def test_a_declared_length_over_the_limit_is_not_read_at_all() -> None:
    error = failure(answer(200, b"x", content_length="200000000"), max_response="10MB")
    assert error.type == "limit"
    assert "max_response (10MB)" in error.message


def test_an_endless_body_stops_at_the_limit() -> None:
    async def endless(asked: Asked) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
        while True:
            yield b"x" * 65536

    assert failure(endless, max_response=1_000_000).type == "limit"


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
def test_the_limit_is_exact(size: int, fits: bool) -> None:
    whole = answer(200, gzip.compress(b"x" * size), content_encoding="gzip")
    if fits:
        assert len(fetch(whole, max_response=1000)[0]["body"]) == 1000
    else:
        assert failure(whole, max_response=1000).type == "limit"


# Redirects.


def hops(*places: str, status: int = 302) -> Callable[[Asked], bytes]:
    """`/0` leads to places[0], which is `/1` and leads on, and so to the end."""

    def route(asked: Asked) -> bytes:
        index = int(asked.path.strip("/") or 0)
        return answer(status, location=places[index]) if index < len(places) else answer(200, b"there")

    return route


def test_a_redirect_is_not_followed_unless_wanted() -> None:
    error = failure(hops("/1?token=x"))
    assert error.type == "http.302"
    assert error.hint is not None
    assert "follow_redirects" in error.hint
    assert "token" not in error.hint


def test_five_redirects_are_followed_and_the_last_url_is_kept() -> None:
    result, asked = fetch(hops("/1", "2", "./3", "/4", "/5"), path="/0", follow_redirects=True)
    assert result["body"] == "there"
    assert result["url"].endswith("/5")
    assert len(asked) == 6


def test_more_redirects_are_a_loop() -> None:
    seen: list[Asked] = []

    def route(asked: Asked) -> bytes:
        seen.append(asked)
        return answer(302, location="/")

    error = failure(route, follow_redirects=True)
    assert error.type == "limit"
    assert "5 redirects" in error.message
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("status", "method", "body"),
    [(301, "GET", b""), (302, "GET", b""), (303, "GET", b""), (307, "POST", b"abc"), (308, "POST", b"abc")],
)
def test_a_redirected_post_becomes_a_get_or_is_repeated(status: int, method: str, body: bytes) -> None:
    _, asked = fetch(hops("/1", status=status), "post", "/0", body="abc", follow_redirects=True)
    assert (asked[1].method, asked[1].body) == (method, body)
    assert ("content-type" in asked[1].headers) == bool(body)


@pytest.mark.parametrize(("status", "method"), [(301, "PUT"), (302, "PUT"), (303, "GET"), (307, "PUT")])
def test_a_redirected_put_is_never_turned_into_a_get_quietly(status: int, method: str) -> None:
    _, asked = fetch(hops("/1", status=status), "put", "/0", body="abc", follow_redirects=True)
    assert asked[1].method == method


def test_another_origin_sees_no_credentials() -> None:
    async def go() -> tuple[list[Asked], list[Asked]]:
        async with serving(lambda asked: answer(200)) as far, serving(lambda asked: answer(200)) as near:
            near.route = lambda asked: answer(307, location=("/again" if asked.path == "/" else far.url))
            headers = {"Cookie": "c=1", "X-Api-Key": "k", "Accept": "text/x"}
            step = made(
                Http,
                post=near.url,
                body="abc",
                headers=headers,
                auth={"bearer": "t"},
                follow_redirects=True,
                allow_private=True,
            )
            await result_of(step)
            return near.asked, far.asked

    near, far = asyncio.run(go())
    for asked in near:
        assert asked.headers["authorization"] == "Bearer t"
        assert asked.headers["cookie"] == "c=1"
    assert not {"authorization", "cookie", "x-api-key"} & far[0].headers.keys()
    assert far[0].headers["accept"] == "text/x"
    assert far[0].body == b"abc"


def test_a_body_that_may_hold_a_secret_does_not_go_to_another_origin() -> None:
    async def go() -> list[Asked]:
        async with serving(lambda asked: answer(200)) as far:
            async with serving(lambda asked: answer(308, location=far.url)) as near:
                step = made(
                    Http, post=near.url, json={"k": "${{ secrets.K }}"}, follow_redirects=True, allow_private=True
                )
                with pytest.raises(StepError, match="another origin"):
                    await result_of(step, StepContext({"secrets": {"K": "x"}}))
            return far.asked

    assert asyncio.run(go()) == []


@pytest.mark.parametrize(
    "place",
    [
        "file:///etc/hostname",
        "ftp://127.0.0.1/",
        "http://user:pw@127.0.0.1/",
        "http://2130706433/",
        "http://[::1",
        "javascript:alert(1)",
    ],
)
def test_a_redirect_is_checked_like_the_first_url(place: str) -> None:
    error = failure(hops(place), follow_redirects=True)
    assert error.type == "refused"
    assert "pw" not in error.message


# Where it may connect.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_private_address_is_refused_without_a_word_to_it(host: str) -> None:
    async def go() -> list[Asked]:
        async with serving(lambda asked: answer(200)) as server:
            with pytest.raises(StepError, match="loopback") as caught:
                await result_of(made(Http, get=f"http://{host}:{server.port}/"))
            assert caught.value.type == "refused"
            return server.asked

    assert asyncio.run(go()) == []


def test_a_redirect_to_the_metadata_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = _http_guard.reason
    monkeypatch.setattr(_http_guard, "reason", lambda address: None if address == "127.0.0.1" else reason(address))
    for place in ("http://169.254.169.254/latest/meta-data", "http://[::ffff:169.254.169.254]/", "http://10.0.0.1/"):
        error = failure(hops(place), follow_redirects=True, allow_private=False)
        assert error.type == "refused"
        assert "not a public address" in error.message


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.255",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.127.255.255",
        "168.63.129.16",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:53aa::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fd00:ec2::254",
        "fc00::1",
        "ff02::1",
        "2001:db8::1",
        "100::1",
    ],
)
def test_an_address_that_is_not_public_is_known(address: str) -> None:
    assert _http_guard.reason(address)


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "172.32.0.1",
        "172.15.255.255",
        "100.63.255.255",
        "100.128.0.1",
        "169.253.1.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450::1",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::",
    ],
)
def test_a_public_address_is_known(address: str) -> None:
    assert _http_guard.reason(address) is None


def test_a_name_is_resolved_once_and_that_address_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "rebind.test":
            return real(host, port, *args, **kwargs)
        calls.append(host)
        address = "127.0.0.1" if len(calls) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)

    async def go() -> list[Asked]:
        async with serving(lambda asked: answer(200)) as server:
            await result_of(made(Http, get=f"http://rebind.test:{server.port}/", allow_private=True))
            return server.asked

    asked = asyncio.run(go())
    assert calls == ["rebind.test"]
    assert asked[0].headers["host"].startswith("rebind.test:")


def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in ("1.1.1.1", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: entries)
    with pytest.raises(StepError, match=r"mixed.test, which is 10\.0\.0\.1, is not a public address"):
        run(made(Http, get="http://mixed.test/"))


def test_the_next_address_is_tried_when_one_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> int:
        async with serving(lambda asked: answer(200)) as server:
            entries = [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in ("127.0.0.9", "127.0.0.1")
            ]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: entries)
            step = made(Http, get=f"http://two.test:{server.port}/", allow_private=True)
            return (await result_of(step))["status"]

    assert asyncio.run(go()) == 200


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "/path",
        "//host/path",
        "http:",
        "http://",
        "http:///x",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "http://user@example.com/",
        "http://user:secretpw@example.com/",
        "http://example.com\\@evil.test/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://1.2.3.4.5/",
        "http://127.0.0.1./",
        "http://example.com./",
        "http://ex ample.com/",
        "http://example..com/",
        "http://%31%32%37.0.0.1/",
        "http://[::1%25lo]/",
        "http://[::1]x/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://example.com:-1/",
        "http://１２７.0.0.1/",
        "http://exam\nple.com/",
        "http://xn--/",
    ],
)
def test_an_odd_url_is_refused(url: str) -> None:
    with pytest.raises(StepError) as caught:
        asyncio.run(
            result_of(made(Http, get="${{ inputs.url }}", allow_private=True), StepContext({"inputs": {"url": url}}))
        )
    assert caught.value.type == "refused"
    assert "secretpw" not in caught.value.message


@pytest.mark.parametrize("text", ["https://x.example/" + "a" * 70_000, "https://x.example/?q=" + "é" * 20_000])
def test_a_url_that_is_too_long_is_refused(text: str) -> None:
    with pytest.raises(StepError) as caught:
        _http_guard.parse(text)
    assert caught.value.type == "refused"
    assert caught.value.message.endswith("is too long")


@given(st.text() | st.text().map(lambda text: "http://" + text))
def test_any_text_is_a_url_or_refused(text: str) -> None:
    try:
        url = _http_guard.parse(text)
    except StepError:
        return
    assert url.scheme in ("http", "https")
    assert _http_guard.host_problem(url.raw_host.decode()) is None


def test_hosts_that_are_not_listed_are_refused_on_redirects_too() -> None:
    assert failure(answer(200), allow_hosts=["example.com"]).type == "refused"
    assert fetch(answer(200), allow_hosts=["example.com", "127.0.0.1"])[0]["status"] == 200
    error = failure(hops("http://elsewhere.test/"), allow_hosts=["127.0.0.1"], follow_redirects=True)
    assert "elsewhere.test" in error.message


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("api.example.com", True),
        ("EXAMPLE.org", True),
        ("a.b.example.com", True),
        ("example.com", False),
        ("evilexample.com", False),
        ("sub.example.org", False),
    ],
)
def test_a_star_stands_for_what_is_below_a_domain(host: str, allowed: bool) -> None:
    assert host_allowed(host, ("*.Example.com", "example.org")) is allowed


def test_allow_private_may_come_from_an_input() -> None:
    assert fetch(answer(204), allow_private="${{ inputs.p }}", scope={"inputs": {"p": True}})[0]["status"] == 204
    error = failure(answer(204), allow_private="${{ inputs.p }}", scope={"inputs": {"p": False}})
    assert error.type == "refused"
    assert failure(answer(204), allow_private="${{ inputs.p }}", scope={"inputs": {"p": "yes"}}).type == "expression"


# Time and trouble.


def test_a_slow_drip_meets_the_total_timeout() -> None:
    async def drip(asked: Asked) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
        while True:
            yield b"x"
            await asyncio.sleep(0.02)

    async def go() -> float:
        async with serving(drip) as server:
            began = time.monotonic()
            step = made(Http, get=server.url + "/?k=v", allow_private=True)
            with pytest.raises(StepError, match=r"did not answer completely within") as caught:
                await result_of(step, StepContext(deadline=began + 0.3))
            assert caught.value.type == "timeout"
            assert "k=v" not in caught.value.message
            return time.monotonic() - began

    assert 0.25 < asyncio.run(go()) < 2


def test_a_server_that_never_answers_meets_the_timeout() -> None:
    async def silent(asked: Asked) -> AsyncIterator[bytes]:
        await asyncio.sleep(3600)
        yield b""

    async def go() -> None:
        async with serving(silent) as server:
            step = made(Http, get=server.url, allow_private=True)
            with pytest.raises(StepError) as caught:
                await result_of(step, StepContext(deadline=time.monotonic() + 0.1))
            assert caught.value.type == "timeout"

    asyncio.run(go())


def test_cancelling_a_request_ends_it_at_once() -> None:
    async def silent(asked: Asked) -> AsyncIterator[bytes]:
        await asyncio.sleep(3600)
        yield b""

    async def go() -> None:
        async with serving(silent) as server:
            task = asyncio.ensure_future(result_of(made(Http, get=server.url, allow_private=True)))
            while not server.asked:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(go())


@pytest.mark.parametrize(
    "whole",
    [b"", b"garbage\r\n\r\n", answer(200, b"abc", content_length="10"), b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n"],
)
def test_a_connection_that_breaks_is_a_network_error(whole: bytes) -> None:
    error = failure(whole, path="/a?token=abc")
    assert error.type == "network"
    assert "token" not in error.message


def test_a_closed_port_is_a_network_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        with pytest.raises(StepError, match="no connection") as caught:
            run(made(Http, get=url, allow_private=True))
    assert caught.value.type == "network"


def test_a_name_that_does_not_resolve_is_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nothing)
    with pytest.raises(StepError, match=r"cannot resolve the host nowhere\.test") as caught:
        run(made(Http, get="http://nowhere.test/"))
    assert caught.value.type == "network"


def test_a_secret_in_the_url_is_neither_in_the_result_nor_in_a_message() -> None:
    scope = {"secrets": {"T": "s3cr3t/x y"}}
    result, asked = fetch(answer(200), path="/hook/${{ secrets.T }}", query={"k": "${{ secrets.T }}"}, scope=scope)
    assert "s3cr3t" in asked[0].path
    assert result["url"].endswith("/…")
    assert "s3cr3t" not in json.dumps(result)
    assert "s3cr3t" not in failure(answer(500), path="/hook/${{ secrets.T }}", scope=scope).message


def test_tls_is_verified_by_name_though_the_connection_goes_to_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(DATA / "localhost.pem", DATA / "localhost.key")
    names: list[str | None] = []
    tls.sni_callback = lambda connection, name, context: names.append(name)

    async def go(host: str) -> Any:
        async with serving(lambda asked: answer(200, b"safe"), tls=tls) as server:
            return await result_of(made(Http, get=f"https://{host}:{server.port}/", allow_private=True))

    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(DATA / "localhost.pem"))
    _http_guard.tls.cache_clear()
    try:
        assert asyncio.run(go("localhost"))["body"] == "safe"
        assert names == ["localhost"]
        with pytest.raises(StepError, match="certificate verify failed"):
            asyncio.run(go("127.0.0.1"))
        monkeypatch.delenv("SSL_CERT_FILE")
        _http_guard.tls.cache_clear()
        with pytest.raises(StepError, match="certificate verify failed"):
            asyncio.run(go("localhost"))
    finally:
        _http_guard.tls.cache_clear()


# What a file may say.


def findings(**settings: Any) -> list[tuple[str, Pointer]]:
    return [(finding.code, finding.pointer) for finding in made(Http, **settings).check()]


OK = "https://example.com/"


@pytest.mark.parametrize(
    ("settings", "code", "pointer"),
    [
        ({}, "TRM320", ()),
        ({"get": OK, "post": OK}, "TRM320", ()),
        ({"get": "file:///etc/hostname"}, "TRM321", ("get",)),
        ({"get": "ftp://${{ inputs.h }}/"}, "TRM321", ("get",)),
        ({"get": "example.com/x"}, "TRM321", ("get",)),
        ({"get": "/x/${{ inputs.p }}"}, "TRM321", ("get",)),
        ({"get": "https://"}, "TRM321", ("get",)),
        ({"get": "https://me:pw@example.com/"}, "TRM321", ("get",)),
        ({"get": "https://2130706433/"}, "TRM321", ("get",)),
        ({"get": "https://example.com./"}, "TRM321", ("get",)),
        ({"post": OK, "json": 1, "form": {}}, "TRM322", ("form",)),
        ({"get": OK, "json": None}, "TRM322", ("json",)),
        ({"head": OK, "body": "x"}, "TRM322", ("body",)),
        ({"get": OK, "headers": {"Host": "x"}}, "TRM323", ("headers", "Host")),
        ({"get": OK, "headers": {"a b": "x"}}, "TRM323", ("headers", "a b")),
        ({"get": OK, "headers": {"X-A": "x", "x-a": "y"}}, "TRM323", ("headers", "x-a")),
        ({"get": OK, "auth": {}}, "TRM324", ("auth",)),
        ({"get": OK, "auth": {"bearer": "x", "basic": ["a", "b"]}}, "TRM324", ("auth",)),
        (
            {"get": OK, "auth": {"bearer": "x"}, "headers": {"authorization": "y"}},
            "TRM324",
            ("headers", "authorization"),
        ),
        ({"get": "http://127.0.0.1:${{ inputs.port }}/"}, "TRM325", ("get",)),
        ({"get": "http://[::1]/"}, "TRM325", ("get",)),
        ({"get": "http://169.254.169.254/latest"}, "TRM325", ("get",)),
        ({"get": OK, "allow_private": "yes"}, "TRM326", ("allow_private",)),
        ({"get": OK, "allow_hosts": ["https://example.com"]}, "TRM327", ("allow_hosts", 0)),
        ({"get": OK, "allow_hosts": ["example.org"]}, "TRM327", ("get",)),
    ],
)
def test_a_mistake_is_found_before_the_run(settings: dict[str, Any], code: str, pointer: Pointer) -> None:
    assert (code, pointer) in findings(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"get": OK},
        {"get": "HTTPS://Example.COM:8443?x=1#y"},
        {"get": "${{ inputs.url }}"},
        {"get": "http://${{ inputs.host }}:80/x"},
        {"get": "http://example.${{ inputs.tld }}/"},
        {"get": "https://münchen.de/"},
        {"get": "https://example.com/@scope/x"},
        {"get": "http://127.0.0.1/", "allow_private": True},
        {"get": "http://127.0.0.1/", "allow_private": "${{ inputs.private }}"},
        {"get": OK, "allow_hosts": ["*.example.com", "example.com"]},
        {"delete": OK, "json": {"why": "x"}},
        {"post": OK, "json": {}, "auth": {"basic": ["a", "b"]}, "headers": {"Idempotency-Key": "k"}},
    ],
)
def test_what_is_right_has_no_findings(settings: dict[str, Any]) -> None:
    assert findings(**settings) == []


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        ({"get": OK}, Replay.REPLAYABLE),
        ({"head": OK}, Replay.REPLAYABLE),
        ({"put": OK}, Replay.IDEMPOTENT),
        ({"delete": OK}, Replay.IDEMPOTENT),
        ({"post": OK}, Replay.NON_REPLAYABLE),
        ({"patch": OK}, Replay.NON_REPLAYABLE),
        ({"post": OK, "headers": {"idempotency-KEY": "k"}}, Replay.IDEMPOTENT),
        ({"patch": OK, "headers": {"Idempotency-Key": "k"}}, Replay.IDEMPOTENT),
    ],
)
def test_the_replay_policy_follows_from_the_method(settings: dict[str, Any], policy: Replay) -> None:
    assert made(Http, **settings).replay() is policy


@pytest.mark.parametrize(
    "settings",
    [
        {"get": OK, "expect_status": "6xx"},
        {"get": OK, "expect_status": 42},
        {"get": OK, "max_response": "a lot"},
        {"get": OK, "max_response": -1},
        {"get": OK, "auth": {"basic": ["only"]}},
        {"get": OK, "auth": {"digest": "x"}},
        {"get": OK, "verify": False},
    ],
)
def test_settings_of_a_wrong_shape_are_no_step(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        made(Http, **settings)


def test_an_http_step_needs_an_event_loop() -> None:
    assert made(Http, get=OK).needs_loop()


# The example.


@pytest.mark.parametrize(
    ("whole", "status", "health"),
    [
        (answer(200, b'{"status": "degraded"}', content_type="application/json"), 200, "degraded"),
        (answer(200, b"hello", content_type="text/plain"), 200, "ok"),
        (answer(204), 204, "ok"),
        (answer(503, b"down"), 503, "status 503"),
    ],
)
def test_the_example_reports_the_health_of_a_service(whole: bytes, status: int, health: str) -> None:
    with background(whole) as url:
        result = run_example({"url": url, "private": True})
    assert result.status == "completed"
    assert result.outputs == {"url": url, "status": status, "health": health}


def test_the_example_does_not_ask_this_machine_unless_told_to() -> None:
    with background(answer(200)) as url:
        result = run_example({"url": url})
    assert result.status == "failed"
    assert result.error["type"] == "refused"
