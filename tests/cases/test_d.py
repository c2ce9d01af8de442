"""HTTP steps, through whole runs against servers on this machine."""

from __future__ import annotations

import gzip
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from .servers import Route, Server, answer
from .support import attempts, call, eventually, measure, problems, save, shown


def asking(url: str, settings: str = "", common: str = "") -> str:
    """A workflow of one request."""
    return save(
        f"- {{id: ask, http: {{get: '{url}', allow_private: true, {settings}}}, {common}}}",
        "outputs: {status: '${{ steps.ask.output.status }}', body: '${{ steps.ask.output.body }}', "
        "attempts: '${{ steps.ask.attempts }}', url: '${{ steps.ask.output.url }}'}",
    )


# D01

EMPTY = {
    "204": answer(204),
    "a JSON type and no byte": answer(200, b"", content_type="application/json"),
    "201 and no type": b"HTTP/1.1 201 Created\r\nconnection: close\r\n\r\n",
}


@pytest.mark.parametrize("what", EMPTY)
def test_an_empty_body_is_null_and_no_failure(serve: Callable[[Route], Server], what: str) -> None:
    outputs = call("run", asking(serve(lambda *_: EMPTY[what]).url)).outputs
    assert outputs["body"] is None
    assert outputs["status"] == int(EMPTY[what].split(b" ")[1])


def test_a_head_request_is_no_failure_and_has_no_body(serve: Callable[[Route], Server]) -> None:
    server = serve(lambda *_: answer(200, b"", content_type="application/json", content_length="99"))
    save(
        f"- {{id: ask, http: {{head: '{server.url}', allow_private: true}}}}",
        "outputs: {body: '${{ steps.ask.output.body }}', size: '${{ steps.ask.output.headers[\"content-length\"] }}'}",
    )
    assert call("run", "case.yaml").outputs == {"body": None, "size": "99"}


# D03


@pytest.mark.parametrize(
    ("status", "method", "body"),
    [*((n, "GET", b"") for n in (301, 302, 303)), *((n, "POST", b"abc") for n in (307, 308))],
)
def test_a_post_that_is_redirected_becomes_a_get_or_is_sent_again(
    serve: Callable[[Route], Server], status: int, method: str, body: bytes
) -> None:
    server = serve(lambda _, path, *__: answer(200, b"there") if path == "/to" else answer(status, location="/to"))
    settings = "body: abc, follow_redirects: true, allow_private: true"
    save(
        f"- {{id: ask, http: {{post: '{server.url}/from', {settings}}}}}",
        "outputs: {url: '${{ steps.ask.output.url }}'}",
    )
    assert call("run", "case.yaml").outputs == {"url": f"{server.url}/to"}
    assert [(one[0], one[3]) for one in server.asked] == [("POST", b"abc"), (method, body)]


def test_redirects_that_lead_in_a_circle_end_at_the_limit(serve: Callable[[Route], Server]) -> None:
    server = serve(lambda *_: answer(302, location="/"))
    ended = call("run", asking(server.url, "follow_redirects: true"))
    assert (ended.status, ended.error["type"], len(server.asked)) == (1, "limit", 6)
    assert "more than 5 redirects" in ended.error["message"]


def test_credentials_stay_with_their_origin_through_a_whole_run(serve: Callable[[Route], Server]) -> None:
    far = serve(lambda *_: answer(200, b"far"))
    near = serve(lambda *_: answer(302, location=f"{far.url}/there"))
    file = asking(near.url, "follow_redirects: true, headers: {Cookie: c=1, Authorization: Basic x}")
    outputs = call("run", file).outputs
    assert (outputs["body"], outputs["url"]) == ("far", f"{far.url}/there")
    assert {"cookie", "authorization"} <= near.asked[0][2].keys()
    assert not {"cookie", "authorization"} & far.asked[0][2].keys()


def test_a_redirect_to_a_file_is_refused(serve: Callable[[Route], Server]) -> None:
    server = serve(lambda *_: answer(302, location="file:///etc/hostname"))
    ended = call("run", asking(server.url, "follow_redirects: true"))
    assert (ended.status, ended.error["type"]) == (1, "refused")


# D04

ASKED_TO_WAIT = {
    "seconds": ("2", 2.0, 3.5),
    "ahead": (3, 1.5, 4.0),
    "past": (-3600, 0.0, 1.0),
    "garbage": ("garbage", 0.0, 1.0),
    "negative": ("-1", 0.0, 1.0),
}


def test_a_wait_that_is_asked_for_is_kept(serve: Callable[[Route], Server]) -> None:
    seen: list[str] = []

    def route(method: str, path: str, *_: Any) -> bytes:
        seen.append(path[1:])
        wait = ASKED_TO_WAIT[path[1:]][0]
        if seen.count(path[1:]) > 1:
            return answer(200, b"ok")
        return answer(429, retry_after=wait if isinstance(wait, str) else formatdate(time.time() + wait, usegmt=True))

    url = serve(route).url
    save(
        "- id: all\n  parallel:\n    branches:\n"
        + "".join(
            f"      {name}: [{{id: ask_{name}, http: {{get: '{url}/{name}', allow_private: true}}, "
            "retry: {max_attempts: 3, delay: 10ms}}]\n"
            for name in ASKED_TO_WAIT
        )
    )
    assert call("run", "case.yaml").status == 0
    assert sorted(seen) == sorted([*ASKED_TO_WAIT] * 2)
    steps = {step["id"]: step["attempts"] for step in shown()["steps"]}
    for name, (_, least, most) in ASKED_TO_WAIT.items():
        first, second = steps[f"ask_{name}"]
        assert least <= second["started"] - first["ended"] <= most, name


def test_a_wait_over_the_limit_fails_at_once_and_names_it(serve: Callable[[Route], Server]) -> None:
    server = serve(lambda *_: answer(503, retry_after="86400"))
    began = time.monotonic()
    ended = call("run", asking(server.url, common="retry: {max_attempts: 3, delay: 10ms}"))
    assert time.monotonic() - began < 2
    assert (ended.status, ended.error["type"], len(server.asked)) == (1, "http.503", 1)
    assert "86400" in ended.error["message"]


def test_ctrl_c_ends_a_wait_that_is_asked_for(
    serve: Callable[[Route], Server], start: Callable[..., subprocess.Popen[str]]
) -> None:
    server = serve(lambda *_: answer(503, retry_after="60"))
    process = start("run", asking(server.url, common="retry: {max_attempts: 3, delay: 10ms}"))
    eventually(lambda: server.asked)
    eventually(lambda: attempts(shown()) == {"ask": ["failed"]})
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 5
    assert process.returncode == 130, err


# D06

BODIES: list[tuple[bytes, str, Any]] = [
    ("é".encode(), "text/plain", "é"),
    (b"\xe9", "text/plain; charset=iso-8859-1", "é"),
    (b"\xe9", "text/plain", "\ufffd"),
    ('{"a":"é"}'.encode("utf-16"), "application/json", {"a": "é"}),
    (b'\xef\xbb\xbf{"a":1}', "application/json", {"a": 1}),
    ("é".encode(), "text/plain; charset=bogus", "é"),
]


def test_bodies_are_read_by_their_type_and_kept(serve: Callable[[Route], Server]) -> None:
    server = serve(
        lambda method, path, *_: answer(200, BODIES[int(path[1:])][0], content_type=BODIES[int(path[1:])][1])
    )
    save(
        f"""
        - id: all
          foreach:
            items: [0, 1, 2, 3, 4, 5]
            do: [{{id: ask, http: {{get: "{server.url}/${{{{ item }}}}", allow_private: true}}}}]
        """,
        "outputs: {all: '${{ steps.all.output | map(attribute=\"ask.body\") | list }}'}",
    )
    assert call("run", "case.yaml").outputs == {"all": [wanted for _, _, wanted in BODIES]}
    assert call("resume", "@last").outputs == {"all": [wanted for _, _, wanted in BODIES]}


# D07


def test_a_drip_meets_the_timeout_of_the_whole_exchange(serve: Callable[[Route], Server]) -> None:
    def drip(*_: Any) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
        while True:
            time.sleep(0.1)
            yield b"x"

    began = time.monotonic()
    ended = call("run", asking(serve(drip).url, common="timeout: 700ms"))
    assert (ended.status, ended.error["type"]) == (1, "timeout")
    assert 0.7 <= time.monotonic() - began < 2


def test_a_download_over_the_limit_costs_no_memory_and_leaves_no_file(serve: Callable[[Route], Server]) -> None:
    endless = [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", *[bytes(1 << 20)] * 200]
    server = serve(lambda *_: iter(endless))
    ended = measure("run", asking(server.url, "save_to: a.bin, max_download: 100MB"), "--json")
    assert ended.status == 1
    assert "max_download (100MB)" in ended.out
    assert ended.megabytes < 110
    assert sorted(path.name for path in Path().iterdir()) == [".tramai", "case.yaml"]


def test_a_body_over_the_limit_costs_no_memory(serve: Callable[[Route], Server]) -> None:
    bomb = gzip.compress(bytes(1 << 20)) * 1024
    endless = [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", *[bytes(1 << 20)] * 200]
    server = serve(
        lambda method, path, *_: answer(200, bomb, content_encoding="gzip") if path == "/bomb" else iter(endless)
    )
    for path in ("bomb", "endless"):
        ended = measure("run", asking(f"{server.url}/{path}", "max_response: 10MB"), "--json")
        assert ended.status == 1
        assert "max_response (10MB)" in ended.out
        assert ended.megabytes < 120  # 10 for the limit, 50 to spare, the rest is Python


# D09


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://example.com/", "gopher://example.com/"])
def test_only_http_is_spoken(url: str) -> None:
    save(f"- {{id: a, http: {{get: '{url}'}}}}")
    assert [problem["severity"] for problem in problems("case.yaml")] == ["error"]
    save("- {id: a, http: {get: '${{ state.url }}', allow_private: true}}", f"state: {{url: {{initial: '{url}'}}}}")
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["type"]) == (1, "refused")


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "http://127.0.0.1:9/", "http://[::1]:9/", "http://0/"]
)
def test_an_address_inside_is_refused_unless_allowed(url: str) -> None:
    save("- {id: a, http: {get: '${{ state.url }}'}, timeout: 5s}", f"state: {{url: {{initial: '{url}'}}}}")
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["type"]) == (1, "refused")
    assert not Path("ran").exists()
