"""`http`: bodies that are saved to files."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import signal
import stat
import subprocess
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai.errors import Pointer
from tramai.permits import Permits
from tramai.step import Replay, StepError
from tramai.steps._http_save import Download, Target
from tramai.steps.http import Http

from .cases.servers import Server as SlowServer
from .cases.support import call, eventually
from .cli.conftest import place, start
from .http_servers import Asked, answer, failure, fetch, serving
from .step_context import StepContext, made, result_of

__all__ = ["place", "start"]

OK = "https://example.com/"
BODY = bytes(range(256)) * 4000


def left(folder: Path) -> list[str]:
    """Every file in a folder and below it."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def test_a_body_is_saved_and_its_digest_is_the_result(tmp_path: Path) -> None:
    result, asked = fetch(answer(200, BODY, content_type="text/plain"), folder=tmp_path, save_to="new/deep/a.bin")
    assert (tmp_path / "new/deep/a.bin").read_bytes() == BODY
    assert left(tmp_path) == ["new/deep/a.bin"]
    digest = hashlib.sha256(BODY).hexdigest()
    told = {"path": "new/deep/a.bin", "bytes": len(BODY), "sha256": digest, "body": None, "status": 200}
    assert {name: result[name] for name in told} == told
    assert asked[0].headers["accept-encoding"] == "identity"


def test_what_is_saved_is_the_inflated_body(tmp_path: Path) -> None:
    packed = answer(200, gzip.compress(BODY), content_encoding="gzip")
    result, _ = fetch(packed, folder=tmp_path, save_to="a")
    assert (tmp_path / "a").read_bytes() == BODY
    assert result["bytes"] == len(BODY)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_says_who_may_read_it(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        fetch(answer(200, b"x"), folder=tmp_path, save_to="a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_a_file_that_is_there_is_replaced_whole_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("stays")
    (tmp_path / "a").symlink_to("other")
    fetch(answer(200, b"new"), folder=tmp_path, save_to="a")
    assert (tmp_path / "other").read_text() == "stays"
    assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "a").read_text() == "new"


@pytest.mark.parametrize(
    ("whole", "kind", "settings"),
    [
        (answer(200, b"abc", content_length="10"), "network", {}),
        (answer(200, gzip.compress(BODY)[:-9], content_encoding="gzip"), "network", {}),
        (answer(200, b"abc", content_encoding="gzip"), "invalid_output", {}),
        (answer(500, b"down"), "http.500", {}),
        (answer(200, BODY), "limit", {"max_download": 1000}),
        (answer(200, gzip.compress(BODY), content_encoding="gzip"), "limit", {"max_download": "500KiB"}),
        (b"", "network", {}),
    ],
)
def test_a_failure_leaves_the_old_file_and_nothing_else(
    whole: bytes, kind: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("old")
    error = failure(whole, folder=tmp_path, save_to="a", **settings)
    assert error.type == kind
    assert (tmp_path / "a").read_text() == "old"
    assert left(tmp_path) == ["a"]
    if kind == "limit":
        assert "max_download" in error.message


@pytest.mark.parametrize("end", ["timeout", "cancel"])
def test_an_end_in_the_middle_leaves_nothing(end: str, tmp_path: Path) -> None:
    async def endless(asked: Asked) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + BODY
        await asyncio.sleep(3600)

    async def go() -> None:
        async with serving(endless) as server:
            loop = asyncio.get_running_loop()
            ctx = StepContext(deadline=loop.time() + (1.5 if end == "timeout" else 60))
            ctx.cwd = str(tmp_path)
            task = asyncio.ensure_future(result_of(made(Http, get=server.url, allow_private=True, save_to="a"), ctx))
            while not left(tmp_path) and not task.done():
                await asyncio.sleep(0)
            assert left(tmp_path) == [".tramai-key.part"]
            if end == "cancel":
                task.cancel()
            with pytest.raises(StepError if end == "timeout" else asyncio.CancelledError):
                await task

    asyncio.run(go())
    assert left(tmp_path) == []


def test_what_a_killed_attempt_left_is_replaced_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / ".tramai-key.part").write_text("half")
    fetch(answer(200, b"whole"), folder=tmp_path, save_to="a")
    assert left(tmp_path) == ["a"]


@pytest.mark.parametrize("status", [204, 304, 404])
def test_only_a_2xx_with_a_body_is_saved(status: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    whole = answer(status, b"" if status < 400 else b"gone", content_type="text/plain")
    result, _ = fetch(whole, folder=tmp_path, save_to="a", expect_status=["2xx", 304, 404])
    assert (result["path"], result["bytes"], result["sha256"]) == (None, None, None)
    assert result["body"] == ("gone" if status == 404 else None)
    assert (tmp_path / "a").read_text() == "old"


def test_a_large_body_costs_no_memory(tmp_path: Path) -> None:
    async def large(asked: Asked) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
        for _ in range(40):
            yield bytes(1 << 20)

    tracemalloc.start()
    try:
        result, _ = fetch(large, folder=tmp_path, save_to="a")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result["bytes"] == (tmp_path / "a").stat().st_size == 40 << 20
    assert peak < 16 << 20


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int, data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tramai.steps._http_save.os.write", full)
    error = failure(answer(200, BODY), folder=tmp_path, save_to="a")
    assert (error.type, "No space left on device" in error.message) == ("refused", True)
    assert left(tmp_path) == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_runner_that_ends_in_the_middle_is_resumed_to_one_whole_file(
    end: signal.Signals, place: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    def route(*_: object) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(BODY)
        yield BODY[:500_000]
        if len(server.asked) == 1:
            assert ended.wait(30)
        yield BODY[500_000:]

    ended = threading.Event()
    server = SlowServer(route)
    (place / "w.yaml").write_text(
        "tramai: 1\nname: w\nsteps:\n"
        f"  - {{id: a, http: {{get: '{server.url}', save_to: out/a.bin, allow_private: true}}}}\n"
        "outputs: {size: '${{ steps.a.output.bytes }}'}\n"
    )
    try:
        process = start("run", "w.yaml", "--json")
        eventually(lambda: [path for path in place.glob("out/.tramai-*.part") if path.stat().st_size])
        process.send_signal(end)
        process.communicate(timeout=30)
        assert len(list(place.glob("out/.tramai-*.part"))) == (end is signal.SIGKILL)
        assert not (place / "out" / "a.bin").exists()
        ended.set()
        assert call("resume", "@last").outputs == {"size": len(BODY)}
    finally:
        ended.set()
        server.close()
    assert left(place / "out") == ["a.bin"]
    assert (place / "out" / "a.bin").read_bytes() == BODY


# Where it may go.


@pytest.mark.parametrize("path", ["../a", "/tmp/a", "sub/../../a", "link/a", "", "sub", "sub/", ".", "..", "n\0"])
def test_no_file_is_saved_outside_the_folder_of_the_run(path: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "link").symlink_to(tmp_path)
    asked: list[Asked] = []
    error = failure(lambda one: asked.append(one) or answer(200, b"x"), folder=home, save_to=path)
    assert error.type in ("refused", "expression")
    assert asked == []
    assert left(tmp_path) == []


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.env", ".bashrc"])
def test_a_value_names_no_hidden_file(path: str, tmp_path: Path) -> None:
    error = failure(answer(200), folder=tmp_path, save_to="${{ inputs.p }}", scope={"inputs": {"p": path}})
    assert (error.type, "begins with a dot" in error.message) == ("refused", True)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("write", "path", "fits"),
    [
        (("build",), "build/a", True),
        (("build",), "a", False),
        ((), "a", False),
        ((".",), "sub/a", True),
        ((".",), "../a", False),
        (("OUT",), "OUT/a", True),
    ],
)
def test_permits_say_where_files_may_be_saved(write: tuple[str, ...], path: str, fits: bool, tmp_path: Path) -> None:
    outside = str(tmp_path / "out")
    home = tmp_path / "home"
    home.mkdir()

    async def go() -> Any:
        async with serving(lambda asked: answer(200, b"x")) as server:
            ctx = StepContext()
            ctx.cwd = str(home)
            named = tuple(name.replace("OUT", outside) for name in write)
            ctx.permits = (Permits(http=("127.0.0.1",), write=named),)
            target = path.replace("OUT", outside)
            return await result_of(made(Http, get=server.url, allow_private=True, save_to=target), ctx)

    if fits:
        assert asyncio.run(go())["bytes"] == 1
        assert len(left(tmp_path)) == 1
    else:
        with pytest.raises(StepError, match="is not permitted"):
            asyncio.run(go())
        assert left(tmp_path) == []


# What a file may say.


def test_a_download_is_repeated_after_a_crash_like_any_get() -> None:
    assert made(Http, get=OK, save_to="a").replay() is Replay.REPLAYABLE


def test_a_download_reaches_for_its_folder() -> None:
    assert ("write", ("save_to",), "build") in made(Http, get=OK, save_to="build/a").reaches()
    assert ("write", ("save_to",), ".") in made(Http, get=OK, save_to="a").reaches()
    assert ("write", ("save_to",), None) in made(Http, get=OK, save_to="${{ inputs.a }}").reaches()


@pytest.mark.parametrize(
    ("settings", "code", "pointer"),
    [
        ({"head": OK, "save_to": "a"}, "TRM347", ("save_to",)),
        ({"get": OK, "max_download": "1GiB"}, "TRM347", ("max_download",)),
    ],
)
def test_a_mistake_is_found_before_the_run(settings: dict[str, Any], code: str, pointer: Pointer) -> None:
    assert (code, pointer) in [(finding.code, finding.pointer) for finding in made(Http, **settings).check()]


def test_a_slow_disk_puts_no_half_of_the_next_attempt_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncing, synced, ended = threading.Event(), threading.Event(), threading.Event()
    sync = os.fsync

    def slow(number: int) -> None:
        syncing.set()
        assert synced.wait(30)
        sync(number)

    class Watched(Download):
        def _settle(self) -> OSError | None:
            try:
                return super()._settle()
            finally:
                ended.set()

    async def save() -> None:
        with Watched(target) as download:
            download.write(BODY)
            await download.finish()

    async def go() -> None:
        first = asyncio.create_task(save())
        await asyncio.to_thread(syncing.wait, 30)
        first.cancel()
        await asyncio.wait([first])
        with Download(target) as second:
            second.write(b"half")
            synced.set()
            await asyncio.to_thread(ended.wait, 30)
            assert not (tmp_path / "a").exists()
            await second.finish()

    target = Target("a", str(tmp_path / "a"), "mark", 1 << 30)
    monkeypatch.setattr(os, "fsync", slow)
    asyncio.run(go())
    assert (tmp_path / "a").read_bytes() == b"half"
    assert left(tmp_path) == ["a"]
