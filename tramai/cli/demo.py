"""`tramai demo`: a built-in example, offline: a run that fails, is mended and resumed, and repeats nothing."""

from __future__ import annotations

import io
import os
import shlex
from typing import TYPE_CHECKING

import click

from ..errors import ConfigurationError, TramaiError
from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ._demo_documents import DemoPart, JournalLine
    from ._start import Request

FILE = "demo.yaml"
LEDGER = "ledger.txt"
STORE = "sqlite:.tramai/tramai.db"
SETTINGS = f'# The runs of this folder are kept in it, whatever is set elsewhere.\nstore = "{STORE}"\n'


class DemoAstray(TramaiError):
    """the demonstration stopped: its run is {status}, in {folder}"""

    # It ends with the exit status of its run.
    code = "TRM720"
    exit_status = 1


@verb("demo", "tramai demo", "tramai demo --dir playground", "tramai demo --json")
@click.option("--dir", "folder", metavar="DIR", help="Work in this folder.  [default: a new temporary one]")
def command(session: Session, folder: str | None) -> int:
    """Show a run that fails and a resume that repeats nothing, offline, in seconds.

    A workflow of four steps is written into a new folder and run there. Its last
    step fails; the cause is mended, and the same run goes on where it failed.
    Then you see what the journal holds, and commands to look around with. The
    folder stays: it is yours to play with. Nothing outside of it is touched.

    Exit status: 0 shown, 1 it did not go as it should have, 3 the folder cannot
    be made or holds a demo already, 130 and 143 stopped by a signal.
    """
    from . import _write, init

    place = _made(folder)
    _write.replace(os.path.join(place, FILE), init.template("demo"), exclusive=True)
    _write.replace(os.path.join(place, "tramai.toml"), SETTINGS, exclusive=True)
    return _Demo(session, place).show()


def _made(folder: str | None) -> str:
    """The folder, with no demo in it yet."""
    import tempfile

    try:
        if folder is None:
            return tempfile.mkdtemp(prefix="tramai-demo-")
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        what = f"cannot make {folder or 'a temporary folder'}: {(error.strerror or '').lower()}"
        raise ConfigurationError(what=what, hint="name another one with --dir DIR") from None
    there = [name for name in (FILE, "tramai.toml", LEDGER, "online", ".tramai") if _is_there(folder, name)]
    if there:
        what = f"{os.path.join(folder, there[0])} is there already"
        raise ConfigurationError(what=what, hint="choose another folder; tramai demo makes a new one")
    return os.path.abspath(folder)


def _is_there(folder: str, name: str) -> bool:
    return os.path.lexists(os.path.join(folder, name))


class _Began:
    """An observer that remembers which leaf steps began."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.failed: str | None = None

    def __call__(self, event: object) -> None:
        """See one event."""
        from ..event import StepFinished, StepStarted

        if isinstance(event, StepStarted) and event.verb != "foreach":
            self.paths.append(event.path)
        elif isinstance(event, StepFinished) and event.status == "failed":
            self.failed = event.path


class _Demo:
    """The demonstration in one folder."""

    def __init__(self, session: Session, folder: str) -> None:
        self._session = session
        self._folder = folder
        self._run_id = ""

    def show(self) -> int:
        """Run it, mend it, resume it; the exit status."""
        from ._advice import short
        from ._start import Request

        self._say(f"A workflow of four steps: {os.path.join(self._folder, FILE)}", f"$ tramai run {FILE}")
        first = self._part(Request(file=FILE))
        if first.exit_status != 1 or first.failed != "publish":
            return self._astray(first)
        done = len(first.began) - 1
        self._say(
            f"`publish` failed. The {done} steps that ended before it are in the journal.",
            "The cause is mended, and the same run goes on:",
            "$ touch online",
            f"$ tramai resume {short(self._run_id)}",
        )
        with open(os.path.join(self._folder, "online"), "w", encoding="ascii"):
            pass
        second = self._part(Request(run=self._run_id))
        charged = self._charged()
        repeated = [path for path in second.began if path in first.began and path != first.failed]
        if second.exit_status != 0 or repeated or not charged or len(charged) != len(set(charged)):
            return self._astray(second)
        self._end(first, second, charged, repeated)
        return 0

    def _part(self, request: Request) -> DemoPart:
        """One call of `run` or `resume`, as its user would see it."""
        from . import _start
        from ._demo_documents import DemoPart

        inner = self._inside()
        began = _Began()
        try:
            inner.begin()
            start = _start.run if request.file is not None else _start.resume
            inner.watching.append(began)
            status = start(inner, request)
            self._run_id = inner.run_id or self._run_id
            stands = inner.looking().get(self._run_id).status.value
        finally:
            inner.close()
        return DemoPart(status=stands, exit_status=status, began=began.paths, failed=began.failed)

    def _inside(self) -> Session:
        """A call of the command line in the folder of the demo, with a store of its own."""
        from ._terminal import Terminal

        inner = Session()
        kept = ("quiet", "verbose", "color", "progress")
        inner.flags.update({name: value for name, value in self._session.flags.items() if name in kept})
        inner.flags.update(directory=self._folder, store=STORE)
        inner.elsewhere = False
        if self._session.json:
            inner.flags["progress"] = "none"
            inner.out = inner.err = Terminal(io.StringIO(), colour="never")
        else:
            inner.out, inner.err = self._session.out, self._session.err
        return inner

    def _say(self, *lines: str) -> None:
        self._session.note("")
        for line in lines:
            said = safe(line)
            self._session.note(self._session.err.paint(said, "bold") if said.startswith("$ ") else said)

    def _astray(self, part: DemoPart) -> int:
        """It was stopped, or something on this machine is not as it should be."""
        error = DemoAstray(status=part.status, folder=self._folder, hint="tramai doctor says what this machine lacks")
        error.exit_status = part.exit_status or 1
        raise error

    def _charged(self) -> list[str]:
        try:
            with open(os.path.join(self._folder, LEDGER), encoding="utf-8") as file:
                return file.read().splitlines()
        except OSError:  # then nobody was charged
            return []

    def _journal(self) -> list[JournalLine]:
        import time

        from . import _fold
        from ._demo_documents import JournalLine
        from ._standing import Standing

        inner = self._inside()
        try:
            inner.begin()
            store = inner.looking()
            standing = Standing(store.get(self._run_id), time.time())
            views = _fold.steps(store.journal(self._run_id), standing)
        finally:
            inner.close()
        return [
            JournalLine(path=one.path, verb=one.verb, status=one.status, attempts=len(one.attempts)) for one in views
        ]

    def _end(self, first: DemoPart, second: DemoPart, charged: list[str], repeated: list[str]) -> None:
        from . import _demo_documents

        session, journal, ways = self._session, self._journal(), self._next()
        if session.json:
            session.emit(
                _demo_documents.Demo(
                    folder=self._folder,
                    file=os.path.join(self._folder, FILE),
                    run_id=self._run_id,
                    run=first,
                    mended="touch online",
                    resume=second,
                    repeated=repeated,
                    charged=charged,
                    journal=journal,
                    next=[command for command, _ in ways],
                )
            )
            return
        self._say(
            f"Only `publish` ran again. {LEDGER} has {len(charged)} lines, one for each customer:",
            "nobody was charged twice, and the model was not asked a second time.",
            "The journal of the run:",
            "",
        )
        _table(session, journal)
        self._say("Look around:")
        width = max(len(command) for command, _ in ways)
        for command, about in ways:
            session.out.line(f"  {safe(command).ljust(width)}  {session.out.paint(about, 'dim')}")

    def _next(self) -> list[tuple[str, str]]:
        from ._advice import short

        run = short(self._run_id)
        store = f" --store {STORE}" if os.environ.get("TRAMAI_STORE") else ""
        return [
            (f"cd {shlex.quote(self._folder)}", "where it ran"),
            (f"tramai show {run}{store}", "its steps, attempts and events"),
            (f"tramai logs {run} publish{store}", "what the attempts wrote"),
            (f"tramai rerun {run} --from letter{store}", "a new run, with the first results of this one"),
            (f"tramai graph {FILE}", "its steps, drawn"),
            ("tramai init", "a first workflow of your own"),
        ]


def _table(session: Session, journal: list[JournalLine]) -> None:
    from ._glyphs import glyph, word
    from ._terminal import pad

    out = session.out
    width = max(len(line.path) for line in journal)
    for line in journal:
        times = f"{line.attempts} attempts" if line.attempts > 1 else ""
        state = f"{glyph(out, line.status)} {pad(line.path, width)}  {line.verb:<8} {word(out, line.status, 9)}"
        out.line(f"  {state}  {times}".rstrip())
