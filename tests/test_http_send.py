"""`http`: bodies that are made of files, and keys that make a request repeatable."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any

import pytest

from tramai import engine, plan, workflow
from tramai.errors import Pointer
from tramai.step import Replay
from tramai.steps.http import Http
from tramai.stores import open_store

from .http_servers import Asked, answer, failure, fetch, serving
from .step_context import StepContext, made, result_of

OK = "https://example.com/"
BIG = bytes(range(256)) * 2800


def parts(asked: Asked) -> list[tuple[dict[str, str], bytes]]:
    """The parts of a multipart body, by a parser that is not ours: what their headers say, and what is in them."""
    whole = f"Content-Type: {asked.headers['content-type']}\r\n\r\n".encode() + asked.body
    found = []
    for part in BytesParser(policy=HTTP).parsebytes(whole).iter_parts():
        said = {"name": part.get_param("name", header="content-disposition"), "file": part.get_filename()}
        found.append(({**said, "type": part["content-type"]}, part.get_payload(decode=True)))
    return found


def test_a_multipart_body_has_texts_and_files_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x00")
    _, asked = fetch(
        answer(204),
        "post",
        folder=tmp_path,
        scope={"inputs": {"title": "Ü & more", "n": 3}},
        multipart={
            "title": "${{ inputs.title }}",
            "tag": ["a", "${{ inputs.n }}"],
            "meta": {"text": '{"a": 1}', "type": "application/json"},
            "image": {"file": "a.png"},
            "other": {"file": "a.png", "name": "b\u00e9.bin", "type": "application/x-thing"},
        },
    )
    nothing = {"file": None, "type": None}
    assert parts(asked[0]) == [
        ({"name": "title", **nothing}, "Ü & more".encode()),
        ({"name": "tag", **nothing}, b"a"),
        ({"name": "tag", **nothing}, b"3"),
        ({"name": "meta", "file": None, "type": "application/json"}, b'{"a": 1}'),
        ({"name": "image", "file": "a.png", "type": "image/png"}, b"\x89PNG\r\n\x00"),
        ({"name": "other", "file": "bé.bin", "type": "application/x-thing"}, b"\x89PNG\r\n\x00"),
    ]
    assert asked[0].headers["content-length"] == str(len(asked[0].body))
    assert "transfer-encoding" not in asked[0].headers


def test_a_name_cannot_end_its_line_or_its_quotes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"data")
    evil = 'a"; x="\r\nX-Evil: 1'
    scope = {"inputs": {"evil": evil}}
    _, asked = fetch(
        answer(204),
        "post",
        folder=tmp_path,
        scope=scope,
        multipart={evil: "1", "f": {"file": "x", "name": "${{ inputs.evil }}"}},
    )
    assert b"\r\nX-Evil" not in asked[0].body
    assert asked[0].body.count(b"a%22; x=%22%0D%0AX-Evil: 1") == 2


def test_data_never_becomes_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"private")
    scope = {"inputs": {"data": {"file": "secret"}}}
    error = failure(answer(204), "post", folder=tmp_path, scope=scope, multipart={"a": "${{ inputs.data }}"})
    assert (error.type, "multipart.a is a map" in error.message) == ("expression", True)


def test_a_value_that_looks_like_a_border_stays_inside_its_part() -> None:
    async def go() -> Asked:
        async with serving(lambda asked: answer(204)) as server:
            text = "--tramai-\r\n--\r\nContent-Disposition: form-data; name=admin\r\n\r\n1"
            step = made(Http, post=server.url, allow_private=True, multipart={"a": text, "b": "2"})
            await result_of(step)
            return server.asked[0]

    asked = asyncio.run(go())
    assert [said["name"] for said, _ in parts(asked)] == ["a", "b"]


def test_a_file_is_a_body_with_the_type_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "r.json").write_bytes(b"{}")
    (tmp_path / "r.tar.gz").write_bytes(b"\x1f\x8b")
    _, asked = fetch(answer(204), "put", folder=tmp_path, body_file="up/r.json")
    assert (asked[0].body, asked[0].headers["content-type"]) == (b"{}", "application/json")
    assert asked[0].headers["content-length"] == "2"
    _, asked = fetch(answer(204), "put", folder=tmp_path, body_file="r.tar.gz")
    assert asked[0].headers["content-type"] == "application/octet-stream"
    headers = {"Content-Type": "x/y"}
    _, asked = fetch(answer(204), "put", folder=tmp_path, body_file=str(tmp_path / "r.tar.gz"), headers=headers)
    assert (asked[0].body, asked[0].headers["content-type"]) == (b"\x1f\x8b", "x/y")


def test_an_empty_file_is_an_empty_body(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    _, asked = fetch(answer(204), "put", folder=tmp_path, body_file="empty")
    assert (asked[0].headers["content-length"], asked[0].body) == ("0", b"")


@pytest.mark.parametrize(("status", "again"), [(307, True), (308, True), (303, False)])
def test_a_redirect_that_keeps_the_method_is_sent_the_whole_body_again(
    status: int, again: bool, tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(BIG)

    def route(asked: Asked) -> bytes:
        return answer(status, location="/there") if asked.path == "/" else answer(200, b"there")

    for settings in ({"body_file": "big"}, {"multipart": {"a": "x", "f": {"file": "big"}}}):
        _, asked = fetch(route, "post", folder=tmp_path, follow_redirects=True, **settings)
        assert BIG in asked[0].body
        assert asked[1].body == (asked[0].body if again else b"")
        assert ("content-length" in asked[1].headers) == again


def test_another_origin_is_sent_the_same_body_with_its_length(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(BIG)

    async def go() -> Asked:
        async with serving(answer) as far, serving(lambda asked: answer(307, location=far.url)) as near:
            far.route = lambda asked: answer(200)
            ctx = StepContext()
            ctx.cwd = str(tmp_path)
            parts = {"a": "x", "f": {"file": "big"}}
            await result_of(made(Http, post=near.url, multipart=parts, follow_redirects=True, allow_private=True), ctx)
            assert near.asked[0].body == far.asked[0].body
            return far.asked[0]

    asked = asyncio.run(go())
    assert asked.headers["content-length"] == str(len(asked.body))
    assert BIG in asked.body


def test_a_large_file_is_not_read_into_memory(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(40 << 20)

    async def go() -> Any:
        async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            left = size = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
            while left:
                left -= len(await reader.read(65536))
            writer.write(answer(200, str(size).encode()))
            writer.close()

        listener = await asyncio.start_server(count, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        ctx = StepContext()
        ctx.cwd = str(tmp_path)
        step = made(Http, put=f"http://127.0.0.1:{port}/", allow_private=True, body_file="big")
        async with listener:
            return await result_of(step, ctx)

    tracemalloc.start()
    try:
        result = asyncio.run(go())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result["body"] == str(40 << 20)
    assert peak < 12 << 20


def test_a_file_that_becomes_shorter_while_it_is_sent_fails_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shrinks"
    file.write_bytes(bytes(600_000))
    pread = os.pread

    def shrinking(number: int, size: int, offset: int) -> bytes:
        os.truncate(file, 300_000)
        return pread(number, size, offset)

    monkeypatch.setattr(os, "pread", shrinking)
    error = failure(answer(204), "put", folder=tmp_path, body_file="shrinks")
    assert (error.type, "became shorter" in error.message) == ("refused", True)


# Which files.


@pytest.mark.parametrize("path", ["../out", "/etc/hostname", ".env", "sub/.git/config", "sub/../../out", "link"])
def test_a_value_leads_to_no_file_outside_and_to_none_that_is_hidden(path: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sub" / ".git").mkdir(parents=True)
    for name in ("sub/.git/config", ".env", "../out"):
        (home / name).write_text("private")
    (home / "link").symlink_to(tmp_path / "out")
    scope = {"inputs": {"path": path}}
    for settings in ({"body_file": "${{ inputs.path }}"}, {"multipart": {"f": {"file": "${{ inputs.path }}"}}}):
        error = failure(answer(204), "post", folder=home, scope=scope, **settings)
        assert error.type == "refused"
        assert "dot" in error.message or "out of the folder" in error.message


def test_what_the_author_wrote_is_read_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / ".hidden").write_text("meant")
    for path in ("../.hidden", str(tmp_path / ".hidden")):
        _, asked = fetch(answer(204), "put", folder=tmp_path / "home", body_file=path)
        assert asked[0].body == b"meant"
    scope = {"inputs": {"name": "hidden"}}
    _, asked = fetch(answer(204), "put", folder=tmp_path, scope=scope, body_file=".${{ inputs.name }}")
    assert asked[0].body == b"meant"


@pytest.mark.parametrize(
    ("path", "why"), [("none", "No such file"), ("folder", "no ordinary file"), ("pipe", "no ordinary file")]
)
def test_what_is_no_file_is_refused_before_anything_is_sent(path: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    error = failure(answer(204), "put", folder=tmp_path, body_file=path)
    assert (error.type, why in error.message) == ("refused", True)


# Keys.


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"idempotency_key": True}, "key"),
        ({"idempotency_key": "order-${{ inputs.n }}"}, "order-7"),
        ({"idempotency_key": "${{ inputs.n }}"}, "7"),
        ({"idempotency_key": False}, None),
    ],
)
def test_a_key_is_sent_as_it_is_asked_for(settings: dict[str, Any], key: str | None) -> None:
    _, asked = fetch(answer(201), "post", json=1, scope={"inputs": {"n": 7}}, **settings)
    assert asked[0].headers.get("idempotency-key") == key


def test_a_step_with_a_key_may_be_repeated() -> None:
    assert made(Http, post=OK, idempotency_key=True).replay() is Replay.IDEMPOTENT
    assert made(Http, post=OK, idempotency_key="x").replay() is Replay.IDEMPOTENT
    assert made(Http, post=OK, idempotency_key=False).replay() is Replay.NON_REPLAYABLE
    assert made(Http, get=OK).replay() is Replay.REPLAYABLE


@pytest.mark.parametrize("value", ["", " ", "a\nb", None, {"a": 1}])
def test_a_value_that_is_no_key_is_an_error(value: Any) -> None:
    scope = {"inputs": {"key": value}}
    assert failure(answer(204), "post", scope=scope, idempotency_key="${{ inputs.key }}").type == "expression"


def test_the_key_is_the_same_on_every_attempt_and_resume_and_another_for_another_step(tmp_path: Path) -> None:
    async def go() -> list[str]:
        statuses = iter([503, 503, 201, 201])
        async with serving(lambda asked: answer(next(statuses))) as server:
            (tmp_path / "w.yaml").write_text(
                "tramai: 1\nname: keyed\nsteps:\n"
                f"  - {{id: a, http: {{post: '{server.url}', idempotency_key: true, allow_private: true}}, "
                "retry: {max_attempts: 2, delay: 1ms}}\n"
                f"  - {{id: b, http: {{post: '{server.url}', idempotency_key: true, allow_private: true}}}}\n"
            )
            made_plan = plan.of(workflow.load(str(tmp_path / "w.yaml")))
            store = open_store("memory:")
            first = await asyncio.to_thread(lambda: engine.run(made_plan, {}, store=store))
            assert first.status == "failed"
            again = await asyncio.to_thread(lambda: engine.resume(first.run_id, store=store))
            assert again.status == "completed"
            return [asked.headers["idempotency-key"] for asked in server.asked]

    one, two, three, other = asyncio.run(go())
    assert one == two == three != other
    assert len(one) == 64


# What a file may say.


@pytest.mark.parametrize(
    ("settings", "code", "pointer"),
    [
        ({"post": OK, "multipart": {}}, "TRM347", ("multipart",)),
        ({"post": OK, "multipart": {"a": {}}}, "TRM347", ("multipart", "a")),
        ({"post": OK, "multipart": {"a": {"file": "x", "text": "y"}}}, "TRM347", ("multipart", "a")),
        ({"post": OK, "multipart": {"a": {"text": "y", "name": "z"}}}, "TRM347", ("multipart", "a", "name")),
        ({"post": OK, "multipart": {"a": "b"}, "json": 1}, "TRM322", ("multipart",)),
        ({"get": OK, "body_file": "x"}, "TRM322", ("body_file",)),
        (
            {"post": OK, "multipart": {"a": "b"}, "headers": {"Content-Type": "x/y"}},
            "TRM323",
            ("headers", "Content-Type"),
        ),
        (
            {"post": OK, "idempotency_key": True, "headers": {"Idempotency-Key": "k"}},
            "TRM323",
            ("headers", "Idempotency-Key"),
        ),
        ({"get": OK, "idempotency_key": True}, "TRM323", ("idempotency_key",)),
    ],
)
def test_a_mistake_is_found_before_the_run(settings: dict[str, Any], code: str, pointer: Pointer) -> None:
    assert (code, pointer) in [(finding.code, finding.pointer) for finding in made(Http, **settings).check()]
