"""Resume: files that are missing, races, cancels, stores of other versions, growth, and fan-outs cut short."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.support import make
from tramai import engine
from tramai.errors import NotInThatState, TramaiError
from tramai.store import Note, Status
from tramai.stores import open_store
from tramai.stores._sqlite_schema import MIGRATIONS

from .support import attempts, call, content, eventually, save, shown, workflow
from .test_k import BASE, DATABASE, failed_runs

Start = Callable[..., "subprocess.Popen[str]"]

# K07


def test_a_missing_file_is_named_and_another_place_or_the_stored_source_will_do() -> None:
    Path("case.yaml").write_text(BASE)
    call("run", "case.yaml")
    os.rename("case.yaml", "moved.yaml")
    ended = call("resume", "@last")
    assert ended.status == 3
    assert "case.yaml" in ended.error["message"]
    assert "--file" in ended.error["hint"]
    Path("wrong.yaml").write_text(workflow("- {id: else, shell: 'touch ran'}"))
    assert call("resume", "@last", "--file", "wrong.yaml").error["code"] == "TRM501"
    assert not Path("ran").exists()
    assert call("list").last["runs"][0]["status"] == "failed"
    assert shown()["status"] == "failed"
    Path("go").touch()
    assert call("resume", "@last", "--file", "moved.yaml").status == 0
    assert content("effects").split() == ["one"]


def test_a_folder_in_the_place_of_the_file_is_told() -> None:
    Path("case.yaml").write_text(BASE)
    call("run", "case.yaml")
    Path("case.yaml").unlink()
    Path("case.yaml").mkdir()
    ended = call("resume", "@last")
    assert ended.status == 3
    assert "case.yaml" in ended.error["message"]
    Path("go").touch()
    assert call("resume", "@last", "--as-started").status == 0


# K08


def test_of_twenty_resumes_one_does_the_work(start: Start) -> None:
    save("- id: a\n  shell: 'test -e ok; echo x >> effects; while [ ! -e go ]; do sleep 0.05; done'")
    call("run", "case.yaml")
    Path("ok").touch()
    processes = [start("resume", "@last", "--json") for _ in range(20)]
    eventually(lambda: sum(process.poll() is not None for process in processes) == 19, 60)
    refused = [process for process in processes if process.poll() is not None]
    assert {process.returncode for process in refused} == {5}
    for process in refused:
        error = json.loads(process.communicate()[0].splitlines()[-1])["error"]
        assert error["code"] == "TRM502"
        assert re.search(r"owned by \S+ until", error["message"])
    (winner,) = (process for process in processes if process.poll() is None)
    eventually(lambda: content("effects"))
    Path("go").touch()
    winner.communicate(timeout=30)
    assert (winner.returncode, content("effects").split()) == (0, ["x"])


# K09


def test_a_cancel_at_the_very_end_has_one_answer() -> None:
    store = open_store("sqlite:race.db")
    made = make([{"id": "a", "local": "1"}])
    seen = set()
    for number in range(100):
        run_id = f"run-{number}"
        told: list[Any] = []

        def ask(run_id: str = run_id, told: list[Any] = told) -> None:
            other = open_store("sqlite:race.db")
            limit = time.monotonic() + 20
            while time.monotonic() < limit:
                try:
                    now = time.time()
                    told.append(other.request_cancel(run_id, Note(at=now, type="cancel.requested"), now=now).status)
                    break
                except NotInThatState as error:
                    told.append(error)
                    break
                except TramaiError:  # it is not there yet
                    continue
            other.close()

        asking = threading.Thread(target=ask)
        asking.start()
        result = engine.run(made, {}, store=store, options=engine.Options(run_id=run_id))
        asking.join()
        stored = store.get(run_id)
        assert stored.status.value == result.status
        assert stored.status in (Status.COMPLETED, Status.CANCELLED)
        (answer,) = told
        if isinstance(answer, NotInThatState):
            assert stored.status is Status.COMPLETED
        if answer is Status.CANCELLED:
            assert stored.status is Status.CANCELLED
        seen.add(stored.status)
    store.close()


def test_a_cancelled_run_stays_so() -> None:
    save("- {id: rest, delay: 2h}\n- {id: after, shell: touch ran}")
    assert call("run", "case.yaml").status == 11
    assert call("cancel", "@last").last["status"] == "cancelled"
    assert call("cancel", "@last").status == 5
    assert call("resume", "@last").status == 5
    assert call("resume", "@last", "--as-started").status == 5
    assert shown()["status"] == "cancelled"
    assert not Path("ran").exists()


# K11


def test_a_store_of_a_newer_version_is_refused_with_both_numbers() -> None:
    (run,) = failed_runs(1)
    meddler = sqlite3.connect(DATABASE)
    meddler.execute("PRAGMA user_version = 999")
    meddler.close()
    before = DATABASE.read_bytes()
    for arguments in (("resume", run), ("list",), ("show", run), ("run", "case.yaml")):
        ended = call(*arguments)
        assert ended.status == 7
        assert "999" in ended.error["message"]
        assert re.search(rf"\b{len(MIGRATIONS)}\b", ended.error["message"])
    assert DATABASE.read_bytes() == before
    assert content("effects").split() == ["one", "two"]


# K15


def test_what_a_step_writes_does_not_grow_with_the_run() -> None:
    sizes = {}
    for count in (50, 400):
        store = open_store(f"sqlite:grow{count}.db")
        items = [{"id": f"s{number}", "local": f"{number} " + "x" * 10_000} for number in range(count)]
        assert engine.run(make(items), {}, store=store).status == "completed"
        store.close()
        sizes[count] = Path(f"grow{count}.db").stat().st_size
    assert sizes[400] / sizes[50] == pytest.approx(8, rel=0.25)


@pytest.mark.parametrize(
    ("bytes_of_b", "words"),
    [(200_000, ("`output`", "limits.max_value", "100 KiB")), (80_000, ("state.a", "limits.max_state", "150 KiB"))],
)
def test_what_is_over_a_limit_of_size_fails_at_its_step_and_keeps_what_was_there(
    bytes_of_b: int, words: tuple[str, ...]
) -> None:
    fill = "head -c {} /dev/zero | tr '\\\\0' x"
    save(
        f"""
        - id: one
          shell: {{run: "{fill.format(90_000)}", parse: text}}
          save: {{a: "${{{{ result.value }}}}"}}
        - id: two
          shell: {{run: "{fill.format(bytes_of_b)}", parse: text}}
          save: {{b: "${{{{ result.value }}}}"}}
        """,
        """
        limits: {max_value: 100KiB, max_state: 150KiB}
        state: {a: {initial: ""}, b: {initial: ""}}
        """,
    )
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["step"], ended.error["type"]) == (1, "two", "limit")
    assert all(word in ended.error["message"] for word in words)
    assert shown()["state"] == {"a": "x" * 90_000, "b": ""}


# K16


def test_after_a_kill_only_what_is_unfinished_in_a_fan_out_runs_again(start: Start) -> None:
    save(
        """
        - id: fan
          parallel:
            items: [0, 1, 2, 3, 4]
            max: 5
            do:
              - id: x
                shell:
                  run: |
                    echo "$N" >> effects
                    if [ "$N" -ge 3 ]; then while [ ! -e go ]; do sleep 0.05; done; fi
                    echo "$N"
                  env: {N: "${{ item }}"}
                  parse: json
                replay: idempotent
        - {id: check, shell: 'test -e go2'}
        """,
        "outputs: {it: '${{ steps.fan.output | map(attribute=\"x\") | list }}'}",
    )
    process = start("run", "case.yaml")
    eventually(lambda: len(content("effects").split()) == 5)
    eventually(lambda: [status for _, status in _items()].count("succeeded") == 3)
    process.kill()
    process.communicate()
    assert sorted(_items()) == [(f"fan[{n}].x", "succeeded" if n < 3 else "interrupted") for n in range(5)]
    Path("go").touch()
    ended = call("resume", "@last")
    assert (ended.status, ended.error["step"]) == (1, "check")
    assert sorted(content("effects").split()) == ["0", "1", "2", "3", "3", "4", "4"]
    Path("go2").touch()
    assert call("resume", "@last").outputs == {"it": [0, 1, 2, 3, 4]}
    assert sorted(content("effects").split()) == ["0", "1", "2", "3", "3", "4", "4"]
    assert attempts(shown())["check"] == ["failed", "succeeded"]


def _items() -> list[tuple[str, str]]:
    return [(step["path"], step["status"]) for step in shown()["steps"] if step["id"] == "x"]
