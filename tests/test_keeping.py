"""What the pages say of upgrades, backups, restores and the compose file: true of real stores and processes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.plugin_install import environment
from tests.postgres import Database
from tests.processes import eventually
from tests.test_worker import enqueue, from_text, work
from tramai import deciding, engine, plan, soundness
from tramai.clock import SystemClock
from tramai.duration import parse
from tramai.errors import StoreTooNew
from tramai.pool import Pool, pooled
from tramai.store import Status, Store
from tramai.stores import open_store
from tramai.worker import Plan

ROOT = Path(__file__).resolve().parents[1]
ASKS = "tramai: 1\nname: asks\nsteps:\n  - {id: ok, gate: {ask: Go on?}}\n  - {id: effect, shell: echo x >> effects}\n"


class Kept:
    """A store that can be made newer, and backed up as the page says."""

    def __init__(self, url: str, newer: Callable[[], object], backup: Callable[[], str]) -> None:
        self.url = url
        self.newer = newer
        self.backup = backup


def sqlite(folder: Path) -> Kept:
    path, copy = folder / "flows.db", folder / "copy.db"

    def newer() -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version=99")
        connection.close()

    def backup() -> str:
        program = shutil.which("sqlite3")
        if program is not None:
            subprocess.run([program, path, f".backup {copy}"], check=True, timeout=60)
        else:  # the same call of the same library
            source, target = sqlite3.connect(path), sqlite3.connect(copy)
            source.backup(target)
            source.close()
            target.close()
        return f"sqlite:{copy}"

    return Kept(f"sqlite:{path}", newer, backup)


def postgres(database: Database, folder: Path) -> Kept:
    schema = database.schema()
    server = database.server.url
    url = f"{server}?schema={schema}"

    def newer() -> None:
        database.admin.execute(f"UPDATE \"{schema}\".tramai_meta SET value = '99' WHERE name = 'format'")

    def backup() -> str:
        dump, name = folder / "flows.dump", f"restored_{schema}"
        programs = [shutil.which(program) for program in ("pg_dump", "pg_restore")]
        if None in programs:
            pytest.skip("pg_dump and pg_restore are not here")
        made = [f"--schema={schema}", "--format=custom", f"--file={dump}", f"--dbname={server}"]
        subprocess.run([str(programs[0]), *made], check=True, timeout=60)
        database.admin.execute(f"CREATE DATABASE {name}")
        target = server.replace("/postgres", f"/{name}")
        subprocess.run([str(programs[1]), f"--dbname={target}", dump], check=True, timeout=60)
        return f"{target}?schema={schema}"

    return Kept(url, newer, backup)


@pytest.fixture(params=["sqlite", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    if request.param == "sqlite":
        return sqlite(tmp_path)
    return postgres(request.getfixturevalue("database"), tmp_path)


@pytest.fixture
def opened() -> Iterator[Callable[[str], Pool]]:
    stores: list[Store] = []

    def make(url: str) -> Pool:
        store = pooled(open_store(url))
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


# Upgrades.


def test_who_has_a_store_open_goes_on_when_a_newer_version_has_come(kept: Kept, opened: Callable[[str], Pool]) -> None:
    store = opened(kept.url)
    before = enqueue(store)
    kept.newer()
    after = enqueue(store)
    told = work(store, Plan(once=True, poll=0.05))
    assert [about["run_id"] for kind, about in told if kind == "worker.took"] == [before, after]
    assert [store.get(run).status for run in (before, after)] == [Status.COMPLETED] * 2
    with pytest.raises(StoreTooNew, match="format 99"):
        opened(kept.url)
    assert store.get(before).status is Status.COMPLETED


def test_a_worker_whose_slots_cannot_open_a_newer_store_ends_and_its_run_waits_for_others(tmp_path: Path) -> None:
    kept = sqlite(tmp_path)
    store = pooled(open_store(kept.url))
    line = [sys.executable, "-m", "tramai", "worker", "--concurrency", "1", "--poll", "100ms", "--store", kept.url]
    worker = subprocess.Popen(
        line, cwd=tmp_path, env=environment(tmp_path, ()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert eventually(lambda: store.workers(now=0.0), within=30)
        kept.newer()
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        _, said = worker.communicate(timeout=60)
        assert (worker.returncode, "TRM454" in said, "TRM511" in said) == (7, True, True), said
        assert "Traceback" not in said
    finally:
        worker.kill()
        worker.communicate()
        store.close()


# Backups.


def test_a_backup_that_is_made_meanwhile_is_whole_and_its_runs_go_on(
    kept: Kept, opened: Callable[[str], Pool], tmp_path: Path
) -> None:
    store = opened(kept.url)
    done, waiting = enqueue(store), enqueue(store, 5)
    work(store, Plan(max_runs=1, poll=0.05))
    copy = opened(kept.backup())
    work(store, Plan(once=True, poll=0.05))
    assert soundness.check(copy).faults == []
    assert [copy.get(run).status for run in (done, waiting)] == [Status.COMPLETED, Status.READY]
    work(copy, Plan(once=True, poll=0.05))
    assert copy.get(waiting).outputs == store.get(waiting).outputs == '{"n":6}'


def test_what_was_done_since_the_backup_is_done_again_after_a_restore(
    kept: Kept, opened: Callable[[str], Pool], tmp_path: Path
) -> None:
    store, made = opened(kept.url), plan.Plan(from_text(ASKS))
    options = engine.Options(wait=0.0, cwd=str(tmp_path))
    run = engine.run(made, {}, store=store, options=options).run_id
    restored = opened(kept.backup())
    for one in (store, restored):
        deciding.decide(one, run, "ok", decision="approved", by="me", clock=SystemClock())
        assert engine.resume(run, store=one, options=options).status == "completed"
    assert (tmp_path / "effects").read_text().split() == ["x", "x"], "the page warns of exactly this"


# The compose file.


def test_the_compose_file_starts_what_there_is() -> None:
    from tramai.cli import worker
    from tramai.cli._metrics_server import address

    text = (ROOT / "docs" / "examples" / "compose.yaml").read_text(encoding="utf-8")
    found = YAML(typ="safe").load(text)
    assert set(found["services"]) == {"database", "worker"}
    service = found["services"]["worker"]
    verb, *flags = service["command"]
    options = {name: option for option in worker.command.params for name in option.opts}
    given: dict[str, str] = {}
    while flags:
        name = flags.pop(0)
        assert name in options, f"tramai worker has no {name}"
        given[name] = "" if getattr(options[name], "is_flag", False) else flags.pop(0)
    assert verb == "worker"
    assert address(given["--metrics"])[1] == int(service["expose"][0])
    assert parse(given["--drain-timeout"]) < parse(service["stop_grace_period"]), "or it is killed while it drains"
    compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")
    assert set(service["secrets"]) <= set(found["secrets"])
    for one in found["services"].values():
        assert {volume.split(":")[0] for volume in one["volumes"]} <= set(found["volumes"])
    extras = re.search(r"EXTRAS=([a-z,]+)", text)
    assert extras is not None
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf"^{extra} = \[", project, re.M) for extra in extras[1].split(","))


def test_the_entry_of_the_compose_file_hands_the_password_to_the_worker(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "examples" / "compose.yaml").read_text(encoding="utf-8")
    shell, flag, script, name = YAML(typ="safe").load(text)["services"]["worker"]["entrypoint"]
    secret = tmp_path / "password"
    secret.write_text("pass word\n")
    program = tmp_path / "tramai"
    program.write_text('#!/bin/sh\necho "$PGPASSWORD,$#,$2"\n')
    program.chmod(0o755)
    script = script.replace("$$", "$").replace("/run/secrets/database_password", str(secret))
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([shell, flag, script, name, "worker", "a b"], env=path, capture_output=True, text=True)
    assert done.stdout == "pass word,2,a b\n"


# The tutorial.


@pytest.mark.sweep
@pytest.mark.slow
def test_two_workers_and_a_database_as_they_are_typed(database: Database, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial" / "two-workers.md").read_text(encoding="utf-8")
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    (tmp_path / "count.yaml").write_text(workflow, encoding="utf-8")
    typed = re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)
    assert len(typed) == 5
    program = tmp_path / "bin" / "tramai"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tramai "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    home = {name: str(tmp_path) for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    variables: dict[str, str] = {
        **home,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TRAMAI_STORE": database.url(),
    }
    script = "echo ---\n".join(typed) + "exit $?\n"
    done: Any = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=180
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    workers, runs, killed, effects, end = done.stdout.split("---\n")
    assert workers.count("online") == 2
    assert runs.count("running") == 4
    assert killed.count("completed") == 4
    counts = [line.split() for line in effects.splitlines() if re.fullmatch(r" *\d+ \d", line)]
    assert counts == [["1", str(n)] for n in range(1, 5)] * 2
    assert "draining reason=asked" in end
