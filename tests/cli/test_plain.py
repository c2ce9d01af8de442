"""A run as plain lines."""

from __future__ import annotations

import io
import threading

import pytest
from syrupy.assertion import SnapshotAssertion

from tramai.cli import _plain
from tramai.cli._plain import Plain
from tramai.cli._terminal import Terminal
from tramai.event import (
    CalledEvent,
    Event,
    RunFinished,
    RunStarted,
    StepFinished,
    StepOutput,
    StepProgress,
    StepRetrying,
    StepStarted,
)

RUN = "0193a000-0000-7000-8000-0000k3f9q2mz"
EVENTS: list[Event] = [
    RunStarted(run_id=RUN, workflow="pr_review", version="3", digest="9f2c41d0" * 8, resumed=False),
    StepStarted(path="fetch", id="fetch", verb="http", attempt=1, at=0.0),
    StepFinished(
        path="fetch", id="fetch", verb="http", attempt=1, status="succeeded", duration=0.42, note="200, 18 KB"
    ),
    StepStarted(path="triage[1].日本語", id="x", verb="shell", attempt=1, at=0.0),
    StepOutput(path="triage[1].日本語", stream="stdout", text="one\ntw"),
    StepOutput(path="triage[1].日本語", stream="stdout", text="o\n::error::not a command\n\x1b[31mred"),
    StepFinished(
        path="triage[1].日本語",
        id="x",
        verb="shell",
        attempt=1,
        status="failed",
        duration=61.0,
        error={"type": "exit.3", "message": "exit status 3\nmore"},
    ),
    StepRetrying(path="triage[1].日本語", id="x", verb="shell", attempt=1, delay=2.0, error={}),
    StepFinished(path="skip", id="skip", verb="local", attempt=0, status="skipped", duration=0.0),
    StepFinished(path="old", id="old", verb="local", attempt=1, status="replayed", duration=0.0),
    StepStarted(path="approve", id="approve", verb="gate", attempt=1, at=0.0),
    RunFinished(run_id=RUN, status="waiting", exit_status=11, duration=3.6),
]


class Utf8(io.StringIO):
    encoding = "utf-8"


class Ascii(io.StringIO):
    encoding = "ascii"


@pytest.mark.parametrize("stream", [Utf8(), Ascii()], ids=["utf8", "ascii"])
def test_each_event_is_a_line(stream: io.StringIO, snapshot: SnapshotAssertion) -> None:
    view = Plain(Terminal(stream, env={}), ["fetch", "triage", "approve"])
    for event in EVENTS:
        view(event)
    view.close()
    assert stream.getvalue() == snapshot


def test_what_a_called_run_does_stands_at_both_paths() -> None:
    said = StepOutput(path="say", stream="stdout", text="one\ntwo")
    ended = StepFinished(path="say", id="say", verb="shell", attempt=1, status="succeeded", duration=0.1)
    old = StepFinished(path="old", id="old", verb="local", attempt=1, status="replayed", duration=0.0)
    deep = CalledEvent(path="mid", run_id="2", event=ended)
    again = StepRetrying(path="say", id="say", verb="shell", attempt=1, delay=2.0, error={})
    started = StepStarted(path="say", id="say", verb="shell", attempt=1, at=0.0)
    for stream, into in ((Utf8(), "›"), (Ascii(), ">")):
        view = Plain(Terminal(stream, env={}), ["ask"])
        for event in (started, said, again, ended, old, deep):
            view(CalledEvent(path="ask", run_id="1", event=event))
        view.close()
        first, retried, rest, end, below = stream.getvalue().splitlines()
        assert first.startswith(f"  ask {into} say ")
        assert first.endswith(" one")
        assert f"ask {into} say" in retried
        assert rest.endswith(" two")
        assert f"ask {into} say  shell" in end
        assert f"ask {into} mid {into} say  shell" in below


def test_verbose_shows_replayed_steps_and_the_whole_digest() -> None:
    stream = Utf8()
    view = Plain(Terminal(stream, env={}), [], verbose=True)
    for event in EVENTS:
        view(event)
    view.close()
    assert "= old" in stream.getvalue()
    assert "9f2c41d0" * 8 in stream.getvalue()


def test_a_silent_step_says_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plain, "FIRST_SIGN", 0.05)
    monkeypatch.setattr(_plain, "NEXT_SIGN", 0.05)
    heard = threading.Event()

    class Listening(Utf8):
        def write(self, text: str) -> int:
            if "started" not in text and "build" in text:
                heard.set()
            return super().write(text)

    view = Plain(Terminal(Listening(), env={}), [])
    view(StepStarted(path="build", id="build", verb="shell", attempt=1, at=0.0))
    assert heard.wait(10.0)
    view.close()


def test_a_sign_of_life_counts_items_and_names_a_few_of_many() -> None:
    view = Plain(Terminal(Utf8(), env={}), [])
    view._watch = lambda: None  # type: ignore[method-assign]
    view(StepStarted(path="fan", id="fan", verb="parallel", attempt=1, at=0.0))
    view(StepProgress(path="fan", id="fan", verb="parallel", done=3, total=40, failed=1))
    for number in range(20):
        view(StepStarted(path=f"fan[{number}].work", id="work", verb="shell", attempt=1, at=0.0))
    first, *others, last = view._signs()
    assert first.endswith("3 of 40 items, 1 failed")
    assert [line.split()[1] for line in others] == [f"fan[{number}].work" for number in range(5)]
    assert last == "    and 15 more"


def test_a_very_long_line_does_not_wait_for_its_end() -> None:
    stream = Utf8()
    view = Plain(Terminal(stream, env={}), [])
    view(StepOutput(path="a", stream="stdout", text="x" * 5000))
    view.close()
    assert stream.getvalue().count("x") == 5000
