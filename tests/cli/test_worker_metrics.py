"""The numbers of a worker: in a format that Prometheus reads, without ids or texts, served before a run is taken."""

from __future__ import annotations

import json
import re
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cases.support import call, save, shown, text_of
from tests.cli.conftest import ROOT
from tests.processes import eventually
from tramai.cli._exposition import CONTENT_TYPE, OTHER, Counter, Gauge, Histogram, Names, page
from tramai.cli._metrics_server import NoMetrics, Server, address, plain
from tramai.cli._worker_metrics import Watch
from tramai.errors import StoreUnavailable
from tramai.pool import pooled
from tramai.stores import open_store
from tramai.worker import Carried, Plan, Report

from ..test_worker import Inline, enqueue, work

LONG = 30.0
Start = Callable[..., "subprocess.Popen[str]"]


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """The samples of a page, by the parser of Prometheus' own library; every name is told once, with HELP and TYPE."""
    parser = pytest.importorskip("prometheus_client.parser", reason="pip install 'tramai[test]'")
    families = list(parser.text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    assert all(family.documentation and family.type != "unknown" for family in families), families
    assert text.endswith("\n")
    found = {}
    for family in families:
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


def value(samples: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, /, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def asked(url: str) -> tuple[int, str, str]:
    """Status, content type and text."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


# The format.


def test_a_page_is_read_as_it_was_meant() -> None:
    odd = 'a "b" \\ c\nd é'
    count = Counter("c_total", "One\nwith \\.", ["name"])
    count.add(odd, by=2)
    span = Histogram("h_seconds", "Two.", ["name"], bounds=(0.1, 1.0))
    for seconds in (0.1, 0.5, 7.25):
        span.observe(seconds, odd)
    samples = parsed(page([count, span, Gauge("g", "Three.", lambda: {(): 0.5}), Counter("n_total", "Four.")]).decode())
    assert value(samples, "c_total", name=odd) == 2
    assert [value(samples, "h_seconds_bucket", name=odd, le=le) for le in ("0.1", "1", "+Inf")] == [1, 2, 3]
    assert value(samples, "h_seconds_count", name=odd) == 3
    assert value(samples, "h_seconds_sum", name=odd) == pytest.approx(7.85)
    assert (value(samples, "g"), value(samples, "n_total")) == (0.5, 0)


def test_a_label_has_no_more_values_than_it_may() -> None:
    kept = Names(2)
    assert [kept(name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", OTHER, "a", OTHER]


# The server.


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9464", "127.0.0.1", 9464),
        (":9464", "127.0.0.1", 9464),
        ("0.0.0.0:1", "0.0.0.0", 1),
        ("[::1]:80", "::1", 80),
        ("db-1.example.org:80", "db-1.example.org", 80),
    ],
)
def test_who_names_no_host_means_this_one_alone(text: str, host: str, port: int) -> None:
    assert address(text) == (host, port)


@pytest.mark.parametrize("text", ["", "x", "1:2:3", "host:", "65536", "-1", "http://h:1", "host:80/x", "9464 "])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(NoMetrics, match="HOST:PORT"):
        address(text)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(":0", {"/healthz": plain(200, "alive")}.get)
    server.start()
    yield server
    server.stop()


def test_the_server_answers_what_there_is_and_is_moved_by_nobody(server: Server) -> None:
    base = server.url.removesuffix("/metrics")
    assert base.startswith("http://127.0.0.1:")
    assert asked(f"{base}/healthz?x=1")[::2] == (200, "alive\n")
    assert asked(f"{base}/etc/passwd")[0] == 404
    with pytest.raises(urllib.error.HTTPError, match="501"):
        urllib.request.urlopen(f"{base}/healthz", data=b"x", timeout=10)
    head = urllib.request.Request(f"{base}/healthz", method="HEAD")
    with urllib.request.urlopen(head, timeout=10) as answer:
        assert (answer.read(), answer.headers["Content-Length"], answer.headers["Server"]) == (b"", "6", "tramai")
    port = server.server_address[1]
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    silent[0].sendall(b"\0\xff rubbish\r\n\r\n")
    assert asked(f"{base}/healthz")[0] == 200
    for one in silent:
        one.close()


# What is counted.


def test_a_worker_is_counted_from_its_first_run_to_its_trouble() -> None:
    store = pooled(open_store("memory:"))
    enqueue(store)
    watch = Watch(store, kind="memory", queues=("default", "other"), slots=2)

    class Counts(Inline):
        def say(self, report: Report) -> None:
            if report.kind == "done":
                made = Carried(
                    workflow="small", queue="default", seconds=0.2, waited=3.0, steps=(("local", "succeeded", 4),)
                )
                report = Report(kind="done", run_id=report.run_id, status=report.status, carried=made)
            super().say(report)

    assert watch.pages("/readyz") == plain(503, "starting")
    assert watch.pages("/else") is None
    work(watch.store, Plan(once=True, poll=0.05), lambda: watch.slot(Counts(store)))  # type: ignore[arg-type]
    watch.heard(Report(kind="refused", code="TRM601"))
    watch.heard(Report(kind="refused", code="TRM503"))
    watch.told("worker.dead", {})
    samples = parsed(_text(watch))
    assert value(samples, "tramai_worker_runs_taken_total", workflow="small") == 1
    assert value(samples, "tramai_worker_runs_finished_total", workflow="small", status="completed") == 1
    assert value(samples, "tramai_worker_steps_total", verb="local", status="succeeded") == 4
    assert value(samples, "tramai_worker_run_seconds_bucket", workflow="small", le="0.5") == 1
    assert value(samples, "tramai_worker_run_wait_seconds_bucket", queue="default", le="1") == 0
    assert value(samples, "tramai_worker_run_wait_seconds_bucket", queue="default", le="5") == 1
    assert value(samples, "tramai_worker_runs_refused_total", code="TRM601") == 1
    assert value(samples, "tramai_worker_claims_lost_total") == 1
    assert value(samples, "tramai_worker_runs_dead_total") == 1
    assert value(samples, "tramai_worker_store_calls_total", call="take") >= 2
    assert value(samples, "tramai_worker_slots") == 2
    assert value(samples, "tramai_worker_slots_busy") == 0
    assert value(samples, "tramai_queue_runs_ready", queue="other") == 0
    assert watch.pages("/readyz") == plain(200, "ready")


def _text(watch: Watch) -> str:
    answer = watch.pages("/metrics")
    assert answer is not None
    assert answer[:2] == (200, CONTENT_TYPE)
    return answer[2].decode()


def test_times_of_schedules_are_counted_by_what_became_of_them() -> None:
    watch = Watch(pooled(open_store("memory:")), kind="memory", queues=["default"], slots=1)
    watch.told("schedule.fired", {"schedule": "wf#1", "slot": "2026-11-30T06:00:00Z"})
    watch.told("schedule.missed", {"schedule": "wf#1", "slot": "2026-11-30T06:00:00Z", "count": 12})
    watch.told("schedule.trouble", {"schedule": "wf#1", "code": "TRM601"})
    answer = watch.pages("/metrics")
    assert answer is not None
    text = answer[2].decode()
    samples = parsed(text)
    assert value(samples, "tramai_worker_schedule_times_total", status="fired") == 1
    assert value(samples, "tramai_worker_schedule_times_total", status="missed") == 12
    assert "wf#1" not in text


def test_a_store_that_is_away_is_told_and_not_asked_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    store = pooled(open_store("memory:"))
    watch = Watch(store, kind="memory", queues=("default",), slots=1)
    watch.heard(Report(kind="ready"))

    def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable(what="it is away")

    monkeypatch.setattr(store, "next_wake", away)
    with pytest.raises(StoreUnavailable):
        watch.store.next_wake()
    assert watch.pages("/readyz") == plain(503, "the store is away")
    samples = parsed(_text(watch))
    assert value(samples, "tramai_worker_store_errors_total", call="next_wake") == 1
    assert value(samples, "tramai_store_up") == 0
    assert not [key for key in samples if key[0] == "tramai_queue_runs_ready"]


def test_the_backlog_is_counted_once_for_many_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    store = pooled(open_store("memory:"))
    calls: list[int] = []
    monkeypatch.setattr(store, "backlog", lambda queues, most: calls.append(1) or dict.fromkeys(queues, 7))
    watch = Watch(store, kind="memory", queues=("q",), slots=1)
    assert [value(parsed(_text(watch)), "tramai_queue_runs_ready", queue="q") for _ in range(3)] == [7, 7, 7]
    assert len(calls) == 1


def test_the_count_goes_down_an_index_and_no_further_than_it_is_told(tmp_path: Path) -> None:
    from tramai.stores import _sqlite_pool

    store = open_store(f"sqlite:{tmp_path}/runs.db")
    connection = sqlite3.connect(tmp_path / "runs.db")
    plan = connection.execute(f"EXPLAIN QUERY PLAN {_sqlite_pool._WAITING}", ("q", 10)).fetchall()
    connection.close()
    store.close()
    assert any("USING COVERING INDEX run_ready" in row[-1] or "USING INDEX run_ready" in row[-1] for row in plan), plan


def test_names_of_workflows_are_bounded_and_no_id_is_a_label() -> None:
    watch = Watch(pooled(open_store("memory:")), kind="memory", queues=("q",), slots=1)
    for number in range(300):
        made = Carried(workflow=f"w{number}", queue="q", seconds=1.0)
        watch.heard(Report(kind="done", run_id=f"run-{number}", status="completed", carried=made))
    samples = parsed(_text(watch))
    workflows = {dict(labels)["workflow"] for name, labels in samples if name == "tramai_worker_runs_finished_total"}
    assert (len(workflows), OTHER in workflows) == (101, True)
    assert value(samples, "tramai_worker_runs_finished_total", workflow=OTHER, status="completed") == 200
    assert "run-" not in _text(watch)


def test_the_page_names_what_is_told_and_its_alerts_ask_for_nothing_else() -> None:
    watch = Watch(pooled(open_store("memory:")), kind="memory", queues=("q",), slots=1)
    told = dict(re.findall(r"^# TYPE (\S+) (\S+)$", _text(watch), re.M))
    text = (ROOT / "docs" / "how-to" / "observe.md").read_text(encoding="utf-8")
    listed = {}
    for names, kind in re.findall(r"^\| (`tramai_[^|]*) \| (\w+) \|", text, re.M):
        listed.update(dict.fromkeys(re.findall(r"`(tramai_\w+)`", names), kind))
    assert listed == told
    blocks = [YAML(typ="safe").load(block) for block in re.findall(r"^```yml\n(.*?)^```$", text, re.M | re.S)]
    (rules,) = [block["groups"][0]["rules"] for block in blocks if "groups" in block]
    assert set(re.findall(r"\btramai_\w+", " ".join(rule["expr"] for rule in rules))) <= set(told)


# A real worker.


def test_a_worker_serves_its_numbers_and_says_when_it_is_not_ready(start: Start) -> None:
    save("- {id: a, shell: 'echo 1'}\n- {id: b, local: 2}\n")
    save("- {id: a, replay: replayable, shell: 'echo $$ > pid; sleep 60'}\n", name="long.yaml")
    for _ in range(3):
        call("run", "case.yaml", "--detach")
    worker = start("worker", "--json", "--poll", "100ms", "--metrics", "0", "--concurrency", "2")
    assert worker.stdout is not None
    base = json.loads(worker.stdout.readline())["metrics"].removesuffix("/metrics")

    def samples() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        status, kind, text = asked(f"{base}/metrics")
        assert (status, kind) == (200, CONTENT_TYPE)
        return parsed(text)

    done = "tramai_worker_runs_finished_total", frozenset({("workflow", "case"), ("status", "completed")})
    assert eventually(lambda: samples().get(done) == 3, within=LONG)
    found = samples()
    assert value(found, "tramai_worker_steps_total", verb="shell", status="succeeded") == 3
    assert value(found, "tramai_worker_steps_total", verb="local", status="succeeded") == 3
    assert value(found, "tramai_worker_run_wait_seconds_count", queue="default") == 3
    assert asked(f"{base}/healthz")[0] == 200
    assert asked(f"{base}/readyz")[::2] == (200, "ready\n")
    call("run", "long.yaml", "--detach")
    assert eventually(lambda: samples()["tramai_worker_slots_busy", frozenset()] == 1, within=LONG)
    worker.send_signal(signal.SIGTERM)
    assert eventually(lambda: asked(f"{base}/readyz")[::2] == (503, "draining\n"), within=LONG)
    assert value(samples(), "tramai_worker_draining") == 1
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=LONG)
    assert worker.returncode == 0


def test_a_port_that_is_taken_is_told_before_any_run_is_taken(start: Start) -> None:
    save("- {id: a, shell: 'echo 1'}\n")
    run = call("run", "case.yaml", "--detach").last["run_id"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = call("worker", "--once", "--metrics", place)
        assert (refused.status, refused.last["error"]["code"]) == (2, "TRM715")
        assert "Address already in use" in text_of("worker", "--once", "--metrics", place)
    assert shown(run)["status"] == "ready"
    assert call("worker", "list").last["workers"] == []


def test_who_does_not_ask_for_numbers_has_no_server(start: Start) -> None:
    save("- {id: a, local: 1}\n")
    call("run", "case.yaml", "--detach")
    began = time.monotonic()
    worker = start("worker", "--once", "--json")
    out, _ = worker.communicate(timeout=LONG)
    assert "metrics" not in json.loads(out.splitlines()[0])
    assert time.monotonic() - began < LONG
