"""`shell` in a sandbox: what is seen, what may be changed, how it ends, and that it is never left out in silence."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tramai import surroundings, workflow
from tramai.interrupt import Interrupt
from tramai.steps import _shell_sandbox

from .processes import alive, eventually
from .reading import HEAD
from .shell_steps import Context, fails, findings, shell, text
from .step_context import run

BWRAP = shutil.which("bwrap")
REASON = "bubblewrap is not installed" if BWRAP is None else _shell_sandbox.tried(BWRAP)
needed = pytest.mark.skipif(REASON is not None, reason=f"NOT TESTED, sandboxes: {REASON}")
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def ctx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    """A run in a folder of its own, by a user whose home is another one."""
    for name in ("run", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Context(tmp_path / "run")


@pytest.fixture
def nap() -> Iterator[str]:
    """Seconds for `sleep` by which its processes are told from all others."""
    seconds = f"4{random.randrange(10**9):09d}"
    yield seconds
    for pid in alive(seconds):
        os.kill(pid, 9)


# What may be changed.


@needed
def test_only_the_folder_of_the_run_can_be_written(ctx: Context, tmp_path: Path) -> None:
    (tmp_path / "run" / "sub").mkdir()
    assert text(ctx, "echo x > made; echo x > sub/made; pwd", sandbox=True) == ctx.cwd
    assert (tmp_path / "run" / "sub" / "made").read_text() == "x\n"
    for place in ("/", "/etc", "/usr", "/var", str(ROOT), "/proc/sys/kernel/hostname"):
        error = fails(ctx, run=f"echo x > {place}/tramai-was-here", sandbox=True)
        assert error.type == "exit.1"
        assert not os.path.exists(f"{place}/tramai-was-here")
    assert fails(ctx, run="echo 1 > /proc/sys/vm/drop_caches", sandbox=True).type == "exit.1"


@needed
def test_what_may_be_written_can_be_named(ctx: Context, tmp_path: Path) -> None:
    build, other = tmp_path / "run" / "build", tmp_path / "other"
    build.mkdir()
    other.mkdir()
    (tmp_path / "run" / "link").symlink_to(other)
    script = "for f in . build ../other link; do ( echo x > $f/made ) 2> /dev/null && echo $f || true; done"
    assert text(ctx, script, sandbox={"write": ["build"]}) == "build"
    assert text(ctx, script, sandbox={"write": []}) == ""
    assert text(ctx, script, sandbox={"write": [str(other)]}).split() == ["../other", "link"]
    assert text(ctx, script, sandbox={"write": [".", str(other)]}).split() == [".", "build", "../other", "link"]
    ctx.scope = {"inputs": {"where": "build"}}
    assert text(ctx, script, sandbox={"write": ["${{ inputs.where }}"]}) == "build"
    error = fails(ctx, run="true", sandbox={"write": ["no"]})
    assert (error.type, error.message) == ("refused", f"{ctx.cwd}/no of sandbox.write does not exist")
    assert "no sandbox" in fails(ctx, run="true", sandbox={"write": ["/"]}).message


@needed
@pytest.mark.parametrize("how", ["read", "write"])
@pytest.mark.parametrize("place", ["build", "build/.ssh"])
def test_a_child_opens_nothing_to_the_next_one_by_a_link(how: str, place: str, ctx: Context, tmp_path: Path) -> None:
    (tmp_path / "home" / ".ssh").mkdir()
    run = tmp_path / "run"
    (run / "build").mkdir()
    text(ctx, 'rmdir build; ln -s "$TARGET" build', env={"TARGET": str(tmp_path / "home")}, sandbox=True)
    error = fails(ctx, run="true", sandbox={how: [place]})
    target = str(tmp_path / "home") + place.removeprefix("build")
    assert error.type == "refused"
    assert error.message == f"{place} of sandbox.{how} is a link that leads out of the run's folder, to {target}"
    assert error.hint == f"name {target} itself, if the step may have it"
    assert fails(ctx, run="true", sandbox={how: [str(run / place)]}).type == "refused"


@needed
def test_links_within_the_folder_of_the_run_are_followed(ctx: Context, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "real").mkdir()
    (run / "link").symlink_to("real")
    text(ctx, "echo x > real/made", sandbox={"write": ["link"]})
    assert (run / "real" / "made").read_text() == "x\n"


@needed
def test_the_temporary_folder_is_private_and_gone_afterwards(ctx: Context) -> None:
    name = f"tramai-private-{random.randrange(10**9)}"
    mark = Path("/tmp", name)
    mark.touch()
    try:
        script = f'ls /tmp /var/tmp; echo "$TMPDIR"; echo x > /tmp/{name}-ours; cat /tmp/{name}-ours'
        said = text(ctx, script, sandbox=True)
        assert said.endswith("/tmp\nx")
        assert name not in said.replace(f"{name}-ours", "")
        assert not os.path.exists(f"/tmp/{name}-ours")
    finally:
        mark.unlink()


# What is seen.


@needed
def test_the_home_is_not_seen_but_for_what_is_named(ctx: Context, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("key")
    (home / ".cargo").mkdir()
    (home / ".cargo" / "config").write_text("conf")
    assert text(ctx, 'ls -A "$HOME"', sandbox=True) == ""
    assert "No such file" in str(fails(ctx, run="cat ~/.ssh/id_ed25519", sandbox=True).details["output"])
    assert text(ctx, "cat ~/.cargo/config; ls -A ~", sandbox={"read": ["~/.cargo"]}) == "conf.cargo"
    assert fails(ctx, run="echo x > ~/.cargo/config", sandbox={"read": ["~/.cargo"]}).type == "exit.1"
    assert text(ctx, "cat ~/.ssh/id_ed25519", sandbox={"read": ["~/.ssh"]}) == "key"


@needed
def test_in_a_run_that_is_started_in_the_home_the_keys_are_hidden_all_the_same(ctx: Context, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("key")
    (home / ".netrc").write_text("machine x password y")
    (home / "work").mkdir()
    ctx.cwd = str(home)
    assert text(ctx, "ls -A .ssh; cat .netrc || ls", sandbox=True) == "work"
    ctx.cwd = str(home / "work")
    assert text(ctx, "ls -A ..; touch made", sandbox=True) == "work"
    assert (home / "work" / "made").exists()


@needed
def test_the_store_is_neither_read_nor_written(ctx: Context, tmp_path: Path) -> None:
    own = tmp_path / "run" / ".tramai"
    (own / "logs").mkdir(parents=True)
    (own / "tramai.db").write_text("state")
    script = "ls -A .tramai; echo x > .tramai/tramai.db"
    error = fails(ctx, run=script, sandbox=True)
    assert "Read-only file system" in str(error.details["output"])
    assert "tramai.db\n" not in str(error.details["output"])
    assert fails(ctx, run="rm -rf .tramai", sandbox=True).type == "exit.1"
    assert fails(ctx, run="mv .tramai aside", sandbox=True).type == "exit.1"
    assert (own / "tramai.db").read_text() == "state"
    # A run that was started elsewhere keeps its logs, and the store, there.
    other = tmp_path / "elsewhere" / ".tramai"
    other.mkdir(parents=True)
    (other / "tramai.db").write_text("state")
    ctx.log_path = str(other / "logs" / "RUN" / "x.log")
    assert text(ctx, f"ls -A {other}; echo nothing", sandbox={"write": [".", "../elsewhere"]}) == "nothing"
    assert (other / "logs" / "RUN" / "x.log").exists()


@needed
def test_more_can_be_hidden(ctx: Context, tmp_path: Path) -> None:
    (tmp_path / "run" / ".env").write_text("KEY=x")
    (tmp_path / "run" / "private").mkdir()
    (tmp_path / "run" / "private" / "a").write_text("a")
    hidden = {"hide": [".env", "private", "not-there"]}
    assert text(ctx, "cat .env || ls -A private", sandbox=hidden) == ""
    assert text(ctx, "cat .env; ls -A private", sandbox=True) == "KEY=xa"
    assert fails(ctx, run="rm -f .env", sandbox=hidden).type == "exit.1"
    (tmp_path / "run" / "private" / "out").mkdir()
    inside = {"hide": ["private"], "write": ["private/out"]}
    assert text(ctx, "ls private; echo x > private/out/made; touch private/b || ls", sandbox=inside) == "out\nprivate"
    assert (tmp_path / "run" / "private" / "out" / "made").exists()


@needed
def test_a_program_that_the_sandbox_hides_is_told_before_it_is_started(ctx: Context, tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "ours"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho real")
    tool.chmod(0o755)
    path = {"PATH": f"{tool.parent}:{os.environ['PATH']}"}
    error = fails(ctx, argv=["ours"], env=path, sandbox=True)
    assert (error.type, error.message) == (
        "refused",
        f"the program {tool} cannot be seen in the sandbox: {tool.parent} is hidden there",
    )
    assert error.hint == f"add {tool.parent} to sandbox.read, if the step may see it"
    (tool.parent / "bin").mkdir()
    (tool.parent / "bin" / "python").symlink_to(tool)
    error = fails(ctx, argv=[str(tool.parent / "bin" / "python")], sandbox=True)
    assert error.hint == f"add {tool.parent} to sandbox.read, if the step may see it"
    step = shell(argv=["ours"], env=path, sandbox={"read": ["../tools"]}, parse="text")
    assert run(step, ctx)["value"] == "real"
    assert f"the folder {tmp_path}/tools cannot be seen" in fails(ctx, run="true", cwd="../tools", sandbox=True).message


@needed
def test_a_script_is_run_by_a_shell_that_is_seen(ctx: Context, tmp_path: Path) -> None:
    own = tmp_path / "home" / "bin"
    own.mkdir()
    (own / "bash").symlink_to("/bin/sh")
    assert text(ctx, 'echo "${BASH_VERSION:+bash}"', env={"PATH": f"{own}:/usr/bin:/bin"}, sandbox=True) == "bash"


# The network, and other processes.


@needed
def test_there_is_no_network_unless_it_is_given(ctx: Context) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"echo hello > /dev/tcp/127.0.0.1/{port}"
        assert "refused" in str(fails(ctx, run=script, sandbox=True).details["output"])
        text(ctx, script, sandbox={"network": True})
        server.settimeout(5)
        with server.accept()[0] as asked:
            assert asked.recv(99) == b"hello\n"
    abstract = socket.socket(socket.AF_UNIX)
    with abstract:
        abstract.bind("\0tramai-" + str(random.randrange(10**9)))
        abstract.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({abstract.getsockname()!r})"
        seen = {"read": [os.path.dirname(os.path.dirname(sys.executable)), sys.base_prefix]}
        error = fails(ctx, argv=[sys.executable, "-c", code], sandbox=seen)
        assert (error.type, "refused" in str(error.details["output"])) == ("exit.1", True)


@needed
def test_nobody_elses_process_is_seen_or_reached(ctx: Context, nap: str) -> None:
    other = subprocess.Popen(["sleep", nap])
    try:
        said = text(ctx, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", sandbox=True)
        assert nap not in said
        assert fails(ctx, run=f"kill -9 {other.pid}", sandbox=True).type == "exit.1"
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


# Values, statuses, ends.


@needed
def test_everything_else_is_as_without_it(ctx: Context) -> None:
    ctx.scope = {"inputs": {"x": 'it\'s "x" $(touch pwned)\né'}}
    value = "${{ inputs.x }}"
    assert text(ctx, 'printf %s "$X"', env={"X": value}, sandbox=True) == ctx.scope["inputs"]["x"]
    assert text(ctx, "cat", stdin=value, sandbox=True) == ctx.scope["inputs"]["x"]
    assert text(ctx, 'cat "$X"; stat -c %a "$X"', files={"X": value}, sandbox=True).endswith("é600")
    assert run(shell(argv=["printf", "%s", value], sandbox=True), ctx)["stdout"] == ctx.scope["inputs"]["x"]
    assert run(shell(run="exit 3", ok_exit_codes=[3], sandbox=True), ctx)["exit_code"] == 3
    error = fails(ctx, run="echo out; echo err >&2; exit 7", sandbox=True)
    assert (error.type, error.message) == ("exit.7", "exit status 7")
    assert set(str(error.details["output"]).split()) == {"out", "err"}
    # bubblewrap says a signal as shells do.
    assert fails(ctx, run="kill -KILL $$", sandbox=True).type == "exit.137"
    assert fails(ctx, argv=["false"], allow=["false"], sandbox=True).type == "exit.1"
    assert fails(ctx, argv=["no-such-program"], sandbox=True).message.startswith("there is no program no-such-program")
    (Path(ctx.cwd) / "broken").write_text("#!/no/such/interpreter\n")
    (Path(ctx.cwd) / "broken").chmod(0o755)
    error = fails(ctx, argv=["./broken"], sandbox=True)
    assert error.type == "refused"
    assert error.message.startswith("the sandbox cannot be made: execvp")


def stopping(ctx: Context, *reasons: Interrupt) -> threading.Thread:
    """Somebody who stops a step as soon as its script says that it is ready."""

    def stop() -> None:
        assert eventually((Path(ctx.cwd) / "ready").exists, within=20)
        for reason in reasons:
            reason.set("signal")

    watcher = threading.Thread(target=stop)
    watcher.start()
    return watcher


@needed
def test_what_has_to_stop_has_its_time_to_clean_up(ctx: Context, nap: str) -> None:
    watcher = stopping(ctx, ctx.interrupt)
    script = f"trap 'echo cleaned up; exit 0' TERM; sleep {nap} & touch ready; wait"
    error = fails(ctx, run=script, sandbox=True, kill_after="10s")
    watcher.join()
    assert error.type == "cancelled"
    assert error.details["output"] == "cleaned up"
    assert not alive(nap)


STUBBORN = """
trap '' TERM
setsid sh -c 'trap "" TERM; sleep {nap}' > /dev/null 2>&1 < /dev/null &
(setsid -f sh -c 'trap "" TERM; exec sleep {nap}')
touch ready
sleep {nap}
"""


@needed
@pytest.mark.parametrize("how", ["timeout", "interrupt", "hurry"])
def test_nothing_of_it_outlives_the_step(ctx: Context, nap: str, how: str) -> None:
    ctx.deadline = time.monotonic() + 2.0 if how == "timeout" else None
    watcher = stopping(ctx, *{"timeout": [], "interrupt": [ctx.interrupt], "hurry": [ctx.hurry, ctx.interrupt]}[how])
    error = fails(ctx, run=STUBBORN.format(nap=nap), sandbox=True, kill_after="200ms")
    watcher.join()
    assert error.type == ("timeout" if how == "timeout" else "cancelled")
    assert (Path(ctx.cwd) / "ready").exists()
    assert not alive(nap)


@needed
def test_what_is_left_in_it_ends_with_it(ctx: Context, nap: str) -> None:
    began = time.monotonic()
    script = f"sleep {nap} > /dev/null 2>&1 & setsid -f sleep {nap}; echo done"
    assert text(ctx, script, sandbox=True) == "done"
    assert time.monotonic() - began < 3
    assert not alive(nap)


@needed
def test_the_end_of_tramai_is_the_end_of_it(ctx: Context, nap: str) -> None:
    code = (
        "from pathlib import Path; from tests.shell_steps import *\n"
        f"run(shell(run={STUBBORN.format(nap=nap)!r}, sandbox=True), Context(Path({ctx.cwd!r})))"
    )
    runner = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert eventually(lambda: (Path(ctx.cwd) / "ready").exists(), within=20)
    assert alive(nap)
    runner.kill()
    runner.wait()
    assert eventually(lambda: not alive(nap), within=5)


# Where there is none.


def test_without_bubblewrap_a_step_is_refused_and_nothing_is_started(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_shell_sandbox, "_PLACES", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    error = fails(ctx, argv=["/bin/sh", "-c", "echo x > ran"], sandbox=True)
    assert (error.type, error.message) == ("refused", "a sandbox needs bubblewrap, and there is no program bwrap")
    assert "apt install bubblewrap" in str(error.hint)
    assert not (Path(ctx.cwd) / "ran").exists()
    file = tmp_path / "flow.yaml"
    wanting = ("true", "{network: true}")
    steps = "".join(f"  - {{id: s{n}, shell: {{run: make, sandbox: {value}}}}}\n" for n, value in enumerate(wanting))
    file.write_text(f"{HEAD}steps:\n{steps}")
    (told,) = surroundings.problems(workflow.load(str(file)), base=str(tmp_path))
    assert (told.code, told.severity) == ("TRM377", "warning")
    assert "apt install bubblewrap" in str(told.hint)
    file.write_text(HEAD + "steps:\n  - {id: a, shell: {run: make, sandbox: false}}\n")
    assert surroundings.problems(workflow.load(str(file)), base=str(tmp_path)) == ()


def test_a_system_that_allows_no_sandbox_is_told_once_and_for_all(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/asked\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    for _ in range(2):
        error = fails(ctx, run="echo x > ran", sandbox=True)
        assert error.type == "refused"
        assert "cannot make a sandbox here: bwrap: No permissions to create new namespace" in error.message
        assert "never run without one" in str(error.hint)
    assert not (Path(ctx.cwd) / "ran").exists()
    assert (tmp_path / "asked").read_text() == "x\n"


@needed
def test_the_sandbox_of_a_step_is_not_looked_for_on_its_own_path(ctx: Context, tmp_path: Path) -> None:
    fake = tmp_path / "run" / "bwrap"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    assert fails(ctx, run="echo x > /etc/x", env={"PATH": f"{ctx.cwd}:/usr/bin:/bin"}, sandbox=True).type == "exit.1"
    assert not os.path.exists("/etc/x")


def test_a_false_sandbox_is_none_and_a_mapping_is_one() -> None:
    assert shell(run="true", sandbox=False) == shell(run="true")
    assert shell(run="true", sandbox={}) == shell(run="true", sandbox=True) != shell(run="true")
    assert not findings(run="true", sandbox={"network": True, "write": [], "read": ["~/.cache"], "hide": [".env"]})
