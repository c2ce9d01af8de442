"""Child processes: their output, their end, and the end of everything they started."""

from __future__ import annotations

import os
import random
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai.interrupt import Interrupt
from tramai.step import StepError
from tramai.steps import _process, _survivors, _watchdog
from tramai.steps._capture import Capture, Live, Log
from tramai.steps._process import Finished

from .processes import alive, eventually

ROOT = Path(__file__).parent.parent
ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    given = Interrupt()
    yield given
    given.close()


@pytest.fixture
def nap() -> Iterator[str]:
    """A number of seconds that no other process sleeps for."""
    seconds = f"3{random.randrange(10**9):09d}"
    yield seconds
    for pid in alive(seconds):
        os.kill(pid, signal.SIGKILL)


def run(argv: list[str] | str, **given: Any) -> Finished:
    """Run a program, or a script with `sh -c`."""
    line = ["sh", "-c", argv] if isinstance(argv, str) else argv
    own = Interrupt()
    settings: dict[str, Any] = {"env": ENV, "cwd": os.getcwd(), "cookie": "run:step:1", "interrupt": own, **given}
    try:
        return _process.run(line, **settings)
    finally:
        own.close()


def soon(seconds: float) -> float:
    return time.monotonic() + seconds


# Output.


def test_both_streams_and_the_exit_status_are_kept_apart() -> None:
    finished = run("echo out; echo err >&2; exit 3")
    assert (finished.stdout.text, finished.stderr.text, finished.exit_code) == ("out\n", "err\n", 3)
    assert finished.signal is None
    assert finished.reason is None


def test_an_end_by_a_signal_has_its_name_and_the_status_that_shells_give() -> None:
    finished = run("kill -SEGV $$")
    assert (finished.exit_code, finished.signal) == (139, "SIGSEGV")


def test_the_child_may_raise_sigpipe_as_usual() -> None:
    assert run(["bash", "-c", "set -o pipefail; yes | head -1 >/dev/null"]).exit_code == 141


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_line_of_five_million_characters_without_end_is_kept_whole(stream: str) -> None:
    script = f"import sys; sys.{stream}.write('x' * 5_000_000)"
    finished = run([sys.executable, "-I", "-S", "-c", script], max_output=6_000_000)
    captured = getattr(finished, stream)
    assert captured.text == "x" * 5_000_000
    assert not captured.truncated


def test_more_than_the_limit_is_kept_as_head_and_tail_with_a_mark() -> None:
    captured = run("printf '%s' 0123456789abcdefghij", max_output=8).stdout
    assert captured.text == "0123\n… [12 bytes left out] …\nghij"
    assert captured.truncated
    assert captured.size == 20


def test_bytes_that_are_not_utf8_are_replaced_and_nul_is_kept() -> None:
    finished = run(r"printf 'c\303(\377\000\351'; sleep 0.01; echo done")
    assert finished.stdout.text == "c\ufffd(\ufffd\0\ufffddone\n"


@pytest.mark.parametrize("limit", range(1, 14))
def test_no_character_is_cut_in_two_where_output_is_left_out(limit: int) -> None:
    capture = Capture(limit)
    data = "aé€😀é€".encode()
    for at in range(len(data)):
        capture.feed(data[at : at + 1])
    captured = capture.captured()
    head, mark, tail = captured.text.partition("\n… [")
    assert "aé€😀é€".startswith(head)
    assert "\ufffd" not in captured.text
    assert not mark or "aé€😀é€".endswith(tail.partition("] …\n")[2])
    left_out = int(tail.split()[0])
    assert left_out + len(head.encode()) + len(tail.partition("] …\n")[2].encode()) == len(data)


def test_sixty_megabytes_of_output_cost_little_memory(tmp_path: Path) -> None:
    script = f"""
import os, resource, sys, time
from tramai.interrupt import Interrupt
from tramai.steps import _process
shown = []
def go(count):
    line = ["sh", "-c", f"head -c {{count}} /dev/zero | tr '\\\\0' 'x'"]
    return _process.run(line, env={{"PATH": os.environ["PATH"]}}, cwd="/", cookie="c", interrupt=Interrupt(),
        log_path={str(tmp_path / "log")!r}, on_output=lambda stream, text: shown.append(len(text)))
go(1000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
finished = go(60_000_000)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(finished.stdout.size, len(finished.stdout.text), after - before)
"""
    began = time.monotonic()
    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    size, kept, grown = map(int, told.stdout.split())
    assert size == 60_000_000
    assert kept < (1 << 20) + 100
    assert grown < 10_000  # KiB
    assert (tmp_path / "log").stat().st_size == 60_001_000
    assert time.monotonic() - began < 10


def test_the_log_has_both_streams_as_they_arrive_and_belongs_to_its_owner(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "deep" / "a.log"
    finished = run("echo o1; sleep 0.03; echo e1 >&2; sleep 0.03; echo o2", log_path=str(log))
    assert log.read_text() == "o1\ne1\no2\n"
    assert finished.tail == "o1\ne1\no2"
    assert log.stat().st_mode & 0o777 == 0o600
    assert finished.log_size == 9


def test_a_log_ends_at_its_limit_and_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "log"), limit=10)
    log.feed(b"0123456")
    log.feed(b"789abc")
    log.feed(b"def")
    log.close()
    assert (tmp_path / "log").read_text() == "0123456789\n… [the log ends here: its limit is 10 bytes] …\n"
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    finished = run("echo x", log_path=str(tmp_path / "link"))
    assert finished.exit_code == 0
    assert finished.log_failure
    assert not (tmp_path / "elsewhere").exists()


def test_progress_bars_collapse_for_people_and_stay_in_the_value() -> None:
    shown: list[str] = []
    finished = run(
        r"i=0; while [ $i -lt 500 ]; do printf '\r%d' $i; i=$((i+1)); done; printf '\nv1.2\n'",
        on_output=lambda stream, text: shown.append(text),
    )
    assert "".join(shown) == "499\nv1.2\n"
    assert finished.stdout.text.count("\r") == 500
    assert finished.tail == "499\nv1.2"


def test_live_lines_survive_any_cut_of_the_stream() -> None:
    data = "a\r\nbé\rc\r\n\nd".encode()
    for size in range(1, len(data)):
        shown: list[str] = []
        live = Live(shown.append)
        for at in range(0, len(data), size):
            live.feed(data[at : at + size])
        live.close()
        assert "".join(shown) == "a\nc\n\nd\n", size


# Input, environment, arguments.


def test_stdin_is_empty_even_when_ours_never_ends() -> None:
    reader, writer = os.pipe()
    code = (
        "from tests.test_process import run\n"
        "import time; began = time.monotonic(); print(repr(run(['cat']).stdout.text), time.monotonic() - began < 2)"
    )
    try:
        told = subprocess.run([sys.executable, "-c", code], stdin=reader, cwd=ROOT, capture_output=True, text=True)
    finally:
        os.close(reader)
        os.close(writer)
    assert told.stdout == "'' True\n", told.stderr


def test_a_large_stdin_neither_hangs_nor_fails_when_it_is_not_read() -> None:
    data = os.urandom(3_000_000).hex().encode()
    assert run(["cat"], stdin=data, max_output=8_000_000).stdout.text == data.decode()
    assert run(["true"], stdin=data).exit_code == 0
    assert run("head -c 5", stdin=data).stdout.size == 5


def test_the_child_sees_its_environment_and_its_mark_only() -> None:
    seen = dict(
        pair.split("=", 1) for pair in run(["env", "-0"], env={**ENV, "A": "x\ny= é"}).stdout.text.split("\0")[:-1]
    )
    assert set(seen) == {"PATH", "A", "TRAMAI_COOKIE"}
    assert seen["A"] == "x\ny= é"
    assert seen["TRAMAI_COOKIE"].endswith(" run:step:1")


@pytest.mark.parametrize("folder", ["here", "with space", "-P"])
def test_the_child_starts_in_its_folder_with_a_clean_environment(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    finished = run("pwd; env", cwd=str(tmp_path / folder))
    assert finished.stdout.text.startswith(f"{tmp_path / folder}\n")
    assert "OLDPWD" not in finished.stdout.text
    assert "PWD" not in run(["env"], cwd=str(tmp_path / folder)).stdout.text


def test_a_value_that_is_too_long_is_refused_by_its_name() -> None:
    fits = "x" * (131_072 - len("BIG=") - 1)
    assert run('printf %s "$BIG" | wc -c', env={**ENV, "BIG": fits}).stdout.text.strip() == str(len(fits))
    with pytest.raises(StepError, match=r"variable BIG has 131,068 bytes; the system takes at most 131,072") as error:
        run(["true"], env={**ENV, "BIG": fits + "x"})
    assert error.value.type == "limit"
    assert "stdin" in str(error.value.hint)
    assert run(["printf", "%.1s", "y" * 131_071]).stdout.text == "y"
    with pytest.raises(StepError, match="argument 1 has 131,072 bytes"):
        run(["printf", "y" * 131_072])
    with pytest.raises(StepError, match="bytes together, more than the system takes"):
        run(["true", *["y" * 131_000] * 100])


def test_a_nul_is_refused_by_the_name_of_what_holds_it() -> None:
    with pytest.raises(StepError, match="variable A holds a NUL") as error:
        run(["true"], env={**ENV, "A": "a\0b"})
    assert error.value.type == "refused"
    with pytest.raises(StepError, match="argument 2 holds a NUL"):
        run(["printf", "%s", "a\0b"])
    with pytest.raises(StepError, match="variable A holds half of a surrogate pair"):
        run(["true"], env={**ENV, "A": "\ud83d"})


def test_a_missing_program_is_named_with_the_path_that_was_searched(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=f"there is no program nosuch on PATH \\({tmp_path}\\)") as error:
        run(["nosuch"], env={"PATH": str(tmp_path)})
    assert error.value.type == "refused"
    (tmp_path / "tool").write_text("echo hi")
    with pytest.raises(StepError, match=r"the program \./tool is not executable") as error:
        run(["./tool"], cwd=str(tmp_path))
    assert error.value.hint == f"chmod +x {tmp_path}/./tool"
    with pytest.raises(StepError, match="the folder /no/such does not exist"):
        run(["true"], cwd="/no/such")


def test_files_that_our_caller_left_open_do_not_reach_the_child(tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(lock, True)
    try:
        listed = run("ls -l /proc/self/fd").stdout.text
    finally:
        os.close(lock)
    assert "lock" not in listed


def test_a_child_has_no_terminal_and_leads_its_session() -> None:
    pid, session = run("echo $$; cut -d' ' -f6 /proc/$$/stat").stdout.text.split()
    assert pid == session
    assert run("exec </dev/tty").exit_code != 0


# The end.


def test_what_runs_in_the_background_ends_with_the_child(nap: str) -> None:
    began = time.monotonic()
    finished = run(f"sleep {nap} & sleep {nap} & echo done")
    assert finished.stdout.text == "done\n"
    assert finished.exit_code == 0
    assert finished.survivors == 2
    assert not alive(nap)
    assert time.monotonic() - began < 2


def test_output_that_comes_a_moment_after_the_child_is_still_taken() -> None:
    finished = run(["bash", "-c", "echo x > >(sleep 0.05; cat)"])
    assert finished.stdout.text == "x\n"
    assert finished.survivors == 0


@pytest.mark.parametrize(
    "left",
    [
        "setsid -f sleep {0}",
        "setsid -f sleep {0} >/dev/null 2>&1",
        "(setsid sh -c 'trap \"\" TERM HUP; sleep {0} & sleep {0}; sleep {0}' >/dev/null 2>&1 &)",
        "setsid -f env -i sleep {0}",
        "env -i sleep {0} & :",
    ],
)
def test_a_process_that_left_the_group_ends_with_the_child(left: str, nap: str) -> None:
    finished = run(left.format(nap) + "; sleep 0.02; echo done")
    assert finished.stdout.text == "done\n"
    assert finished.survivors >= 1
    assert not alive(nap)


def test_a_daemon_can_be_left_on_purpose(nap: str, tmp_path: Path) -> None:
    there = tmp_path / "there"  # until it has left the group it belongs to the child
    daemon = f"env -u TRAMAI_COOKIE setsid -f sh -c 'echo > {there}; exec sleep {nap}' >/dev/null 2>&1"
    run(f"{daemon}; while [ ! -e {there} ]; do sleep 0.01; done")
    assert alive(nap)


@pytest.mark.parametrize(
    "script",
    [
        "echo begun; sleep {0} & sleep {0}",
        "trap '' TERM INT; echo begun; sleep {0} & sleep {0}; sleep {0}",
        "echo begun; setsid -f sh -c 'trap \"\" TERM; sleep {0}; sleep {0}'; sleep {0}",
        "echo begun; setsid env -i sleep {0} >/dev/null 2>&1 & sleep {0}",
        "echo begun; kill -STOP $$; sleep {0}",
    ],
)
def test_a_timeout_ends_the_whole_tree_and_keeps_the_output(script: str, nap: str) -> None:
    began = time.monotonic()
    finished = run(script.format(nap), deadline=soon(0.3), kill_after=0.3)
    assert finished.reason == "timeout"
    assert finished.stdout.text == "begun\n"
    assert 0.3 <= time.monotonic() - began < 2
    assert not alive(nap)
    assert finished.stuck == 0


def test_a_child_that_ends_in_its_time_may_clean_up() -> None:
    finished = run("trap 'echo bye; exit 0' TERM; echo begun; sleep 0.05 & wait; sleep 5 & wait", deadline=soon(0.3))
    assert finished.reason == "timeout"
    assert finished.stdout.text == "begun\nbye\n"
    assert finished.exit_code == 0


def test_an_interrupt_from_another_thread_stops_the_child(nap: str, interrupt: Interrupt) -> None:
    timer = threading.Timer(0.1, interrupt.set, ["signal"])
    timer.start()
    began = time.monotonic()
    finished = run(f"sleep {nap}", interrupt=interrupt)
    timer.join()
    assert finished.reason == "signal"
    assert finished.signal == "SIGTERM"
    assert time.monotonic() - began < 2
    assert not alive(nap)


@pytest.mark.parametrize("hurried", [True, False])
def test_a_lost_lease_or_a_second_signal_leaves_no_time(hurried: bool, nap: str, interrupt: Interrupt) -> None:
    hurry = Interrupt()
    timers = [threading.Timer(0.1, interrupt.set, ["signal" if hurried else "lease_lost"])]
    if hurried:
        timers.append(threading.Timer(0.2, hurry.set, ["signal"]))
    for timer in timers:
        timer.start()
    began = time.monotonic()
    finished = run(f"trap '' TERM; sleep {nap}; sleep {nap}", interrupt=interrupt, hurry=hurry, kill_after=60)
    for timer in timers:
        timer.join()
    assert finished.signal == "SIGKILL"
    assert time.monotonic() - began < 3
    assert not alive(nap)


def test_an_interrupt_that_is_set_already_stops_at_once(nap: str, interrupt: Interrupt) -> None:
    interrupt.set("cancelled")
    assert run(f"sleep {nap}", interrupt=interrupt).reason == "cancelled"
    assert not alive(nap)


def test_a_flood_of_output_does_not_hold_up_a_timeout() -> None:
    began = time.monotonic()
    finished = run(["yes"], deadline=soon(0.3), kill_after=0.3)
    assert finished.reason == "timeout"
    assert finished.stdout.truncated
    assert time.monotonic() - began < 3


def test_many_children_side_by_side_end_well(nap: str) -> None:
    results: list[Finished] = []

    def one(index: int) -> None:
        results.append(run(f"setsid -f sleep {nap}; echo x", cookie=f"r:s[{index}]:1"))

    threads = [threading.Thread(target=one, args=[index]) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [finished.stdout.text for finished in results] == ["x\n"] * 12
    assert not alive(nap)


def test_no_descriptor_is_left_behind() -> None:
    run("true")
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run("echo x", stdin=b"y" * 200_000)
        run("sleep 9", deadline=soon(0.02))
        with pytest.raises(StepError):
            run(["true", *["y" * 131_000] * 100])
    assert sorted(os.listdir("/proc/self/fd")) == before


def duplicates() -> Iterator[int]:
    """Descriptors until there are none left."""
    while True:
        try:
            yield os.dup(0)
        except OSError:
            return


def test_a_system_without_descriptors_fails_the_step_and_no_more() -> None:
    run("true")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 9, hard))
    try:
        taken.extend(duplicates())
        for number in (taken.pop(), taken.pop(), taken.pop()):
            os.close(number)
        with pytest.raises(StepError, match=r"the system cannot run \S+ now: Too many open files"):
            run("true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in taken:
            os.close(number)
    assert run("true").exit_code == 0


def test_without_pidfd_a_child_is_waited_for_all_the_same(monkeypatch: pytest.MonkeyPatch, nap: str) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert run("echo x; exec >&- 2>&-; sleep 0.1; exit 4").exit_code == 4
    assert run(f"exec >&- 2>&-; sleep {nap}", deadline=soon(0.2)).reason == "timeout"
    assert not alive(nap)


def test_without_proc_the_group_is_ended(monkeypatch: pytest.MonkeyPatch, nap: str) -> None:
    monkeypatch.setattr(_survivors, "PROC", False)
    assert run(f"sleep {nap} & echo x").stdout.text == "x\n"
    finished = run(f"trap '' TERM; sleep {nap} & sleep {nap}; sleep {nap}", deadline=soon(0.2), kill_after=0.2)
    assert finished.signal == "SIGKILL"
    assert not alive(nap)


# Survivors of another runner.


def test_survivors_are_found_by_run_by_path_and_by_attempt(nap: str) -> None:
    children = []
    for cookie in ("1:a:1", "1:a:12", "1:ab:1", "11:a:1"):
        env = {**ENV, _survivors.VARIABLE: f"outer{nap}:x:1 0123 r{nap}{cookie}"}
        children.append(subprocess.Popen(["sleep", nap], env=env))
    assert eventually(lambda: len(alive(nap)) == 4)
    ended = []
    for asked in ("1:a:1", "1:a", "1:", "zz"):
        count = _process.end_survivors(f"r{nap}{asked}")
        ended.append((count, [child.poll() is None for child in children]))
    assert ended == [
        (1, [False, True, True, True]),
        (1, [False, False, True, True]),
        (1, [False, False, False, True]),
        (0, [False, False, False, True]),
    ]
    assert _process.end_survivors(f"outer{nap}:x") == 1
    for child in children:
        child.wait()


def test_a_cookie_is_one_word_whatever_the_path_holds() -> None:
    assert _process.cookie("r", "a[42].b", 1) == "r:a[42].b:1"
    odd = _process.cookie("r", 'a["x y\né%"]', 1)
    assert odd == 'r:a["x%20y%0a%c3a9%25"]:1'
    assert len(odd.split()) == 1


# The watchdog.

RUNNER = """
import os, sys, threading
from tramai.interrupt import Interrupt
from tramai.steps import _process
def child(script, name):
    _process.run(["sh", "-c", script], env={"PATH": os.environ["PATH"]}, cwd="/", cookie=f"run:{name}:1",
        interrupt=Interrupt(), on_output=lambda stream, text: print(text, end="", flush=True))
"""


def runner(body: str, **given: Any) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", RUNNER + body]
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, **given)


def reads(process: subprocess.Popen[str], line: str = "begun") -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{line}\n"


STUBBORN = [
    "sleep {0} & echo begun; sleep {0}",
    "trap '' TERM HUP INT; (trap '' TERM; sleep {0}; sleep {0}) & echo begun; sleep {0}; sleep {0}",
    "setsid -f sh -c 'trap \"\" TERM; setsid -f sleep {0}; sleep {0}; sleep {0}'; echo begun; sleep {0}",
    "(setsid sh -c 'sleep {0} & sleep {0}' >/dev/null 2>&1 </dev/null &); sleep 0.05; echo begun; sleep {0}",
]


@pytest.mark.parametrize("script", STUBBORN)
@pytest.mark.parametrize("thread", [False, True])
def test_a_runner_that_is_killed_leaves_no_child(script: str, thread: bool, nap: str) -> None:
    call = f"child({script.format(nap)!r}, 'a')"
    process = runner(f"threading.Thread(target=lambda: {call}).start()" if thread else call)
    reads(process)
    assert alive(nap)
    process.kill()
    process.wait()
    assert eventually(lambda: not alive(nap))
    assert process.stdout is not None
    assert process.stdout.read() == ""  # the watchdog holds no end of the runner's pipes
    process.stdout.close()


def test_a_runner_that_is_killed_by_name_leaves_no_child(nap: str) -> None:
    """`pkill -9 -f tramai` finds everything with that word in its arguments; the watchdog must not be among it."""
    process = runner(f"child('sleep {nap} & echo begun; sleep {nap}', 'a')  # tramai run x.yaml")
    reads(process)
    watchdogs = children(process.pid)
    for pid in [pid for pid in watchdogs | {process.pid} if pid in alive("tramai")]:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    assert eventually(lambda: not alive(nap))
    assert process.stdout is not None
    process.stdout.close()


def children(pid: int) -> set[int]:
    return {child for child, (parent, *_) in _survivors.table().items() if parent == pid}


def is_watchdog(pid: int) -> bool:
    return pid in alive("waits for the end of a runner")


def watchdogs_of(pid: int) -> set[int]:
    return {child for child in children(pid) if is_watchdog(child)}


def watchdog_of(pid: int) -> int:
    (found,) = watchdogs_of(pid)
    return found


@pytest.mark.skipif(not os.path.exists("/usr/bin/setpriv"), reason="needs setpriv of util-linux")
def test_the_parent_death_signal_works_without_the_watchdog(nap: str) -> None:
    process = runner(f"child('echo begun; exec sleep {nap}', 'a')")
    reads(process)
    dog = watchdog_of(process.pid)
    os.kill(dog, signal.SIGSTOP)
    process.kill()
    process.wait()
    assert eventually(lambda: not alive(nap))
    os.kill(dog, signal.SIGCONT)
    assert process.stdout is not None
    process.stdout.close()


def test_a_watchdog_that_is_killed_comes_back_while_a_child_runs(nap: str) -> None:
    process = runner(f"child('echo begun; sleep {nap}', 'a')")
    reads(process)
    first = watchdog_of(process.pid)
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: watchdogs_of(process.pid) - {first})
    process.kill()
    process.wait()
    assert eventually(lambda: not alive(nap))
    assert process.stdout is not None
    process.stdout.close()


def test_a_watchdog_that_is_just_dying_is_not_taken_for_a_living_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end of the pipe is closed a moment before the kernel has an end of the process to tell of."""
    dog = _watchdog.Watchdog()
    try:
        first = dog._pid
        os.kill(first, signal.SIGKILL)
        gone = select.poll()
        gone.register(dog.fileno(), 0)
        gone.poll()
        truly, early = os.waitpid, iter(range(3))
        monkeypatch.setattr(os, "waitpid", lambda *given: (0, 0) if next(early, None) is not None else truly(*given))
        dog.revive()
        assert dog._pid != first
        assert eventually(lambda: is_watchdog(dog._pid))
    finally:
        dog.stop(patience=5)


def test_the_watchdog_holds_nothing_of_the_runner_and_ignores_its_signals(tmp_path: Path, nap: str) -> None:
    lock = os.open(tmp_path / "inherited", os.O_RDWR | os.O_CREAT)
    body = (
        f"import fcntl; lock = open({str(tmp_path / 'lock')!r}, 'w'); fcntl.flock(lock, fcntl.LOCK_EX); "
        f"os.set_inheritable(lock.fileno(), True); child('echo begun; sleep {nap}', 'a')"
    )
    process = runner(body, pass_fds=[lock])
    os.close(lock)
    reads(process)
    dog = watchdog_of(process.pid)
    held = {name: os.readlink(f"/proc/{dog}/fd/{name}") for name in os.listdir(f"/proc/{dog}/fd")}
    assert held.pop("0").startswith("pipe:")
    assert held.pop("3").startswith("/memfd:")
    assert {name: held.pop(name) for name in ("1", "2")} == {"1": "/dev/null", "2": "/dev/null"}
    assert not held
    assert os.readlink(f"/proc/{dog}/cwd") == "/"
    table = _survivors.table()
    assert table[dog][2] == dog  # a session of its own: no terminal sends it anything
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(dog, number)
    process.kill()
    process.wait()
    assert eventually(lambda: not alive(nap))
    assert process.stdout is not None
    process.stdout.close()


def test_at_a_normal_end_the_watchdog_is_gone_at_once_and_no_zombie() -> None:
    body = (
        "import atexit, time\n"
        "child('echo hi', 'a')\n"
        "from tramai.steps import _watchdog\n"
        "dog = _watchdog.ensure_watchdog()\n"
        "began = time.monotonic(); dog.stop()\n"
        "print(time.monotonic() - began < 0.05, os.path.exists(f'/proc/{dog._pid}') and dog._pid > 0)\n"
    )
    process = runner(body)
    reads(process, "hi")
    reads(process, "True False")
    assert process.wait() == 0
    assert process.stdout is not None
    process.stdout.close()


def test_a_fork_of_the_runner_does_not_keep_the_watchdog_waiting(nap: str) -> None:
    body = f"""
_process.ensure_watchdog()
pid = os.fork()
if pid == 0:
    import time
    time.sleep({nap})
print(pid, flush=True)
child('echo begun; sleep {nap}', 'a')
"""
    process = runner(body)
    assert process.stdout is not None
    fork = int(process.stdout.readline())
    reads(process)
    process.kill()
    process.wait()
    try:
        assert eventually(
            lambda: not [pid for pid in alive(nap) if b"sleep\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        )
    finally:
        os.kill(fork, signal.SIGKILL)
        process.stdout.close()


def test_children_of_a_runner_inside_a_child_end_with_the_outer_one(nap: str) -> None:
    inner = RUNNER + f"child('setsid -f sleep {nap}; echo begun; sleep {nap}', 'inner')"
    finished = run(
        [sys.executable, "-c", inner], env={**ENV, "PYTHONPATH": str(ROOT)}, deadline=soon(2), kill_after=0.0
    )
    assert finished.stdout.text == "begun\n"
    assert not alive(nap)


def test_slots_of_the_note_are_used_again() -> None:
    dog = _watchdog.Watchdog()
    try:
        first, second = dog.reserve(), dog.reserve()
        dog.enter(first, 4_000_001)
        dog.leave(second)
        assert dog.reserve() == second
        assert os.pread(dog._note, 100, 0) == b"10004000001\n10000000000\n"
        dog.leave(first)
        dog.leave(second)
        assert os.pread(dog._note, 100, 0) == b"00000000000\n" * 2
    finally:
        dog.stop(2.0)
        os.close(dog._note)
    assert dog._pid == 0


def test_starting_a_child_costs_no_more_than_a_few_milliseconds() -> None:
    run(["true"])

    def cpu() -> float:
        mine, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime

    def cost(count: int, start: Callable[[], Any]) -> float:
        before = cpu()
        for _ in range(count):
            start()
        return (cpu() - before) / count

    bare = cost(20, lambda: subprocess.run(["true"], capture_output=True))
    assert cost(20, lambda: run(["true"])) < 4 * bare


def test_a_secret_is_masked_in_the_log_however_it_is_cut(tmp_path: Path) -> None:
    for cut in range(1, 30):
        path = tmp_path / f"{cut}.log"
        log = Log(str(path), hidden=(b"s3cret-value", b"other"))
        text = b"a s3cret-value, s3cret, another s3cret-values3cret-value"
        for start in range(0, len(text), cut):
            log.feed(text[start : start + cut])
        log.close()
        assert path.read_bytes() == b"a ***, s3cret, an*** ******"
