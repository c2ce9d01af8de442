"""Classes of other packages that break the rules of steps: a finding or a failed step, never a bug of ours."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, ClassVar

import pytest

from tramai import driver, kinds
from tramai.errors import BugError
from tramai.interrupt import Interrupt
from tramai.step import Done, Finding, Outcome, Reject, Step, StepError, Suspend
from tramai.translating import translated

from .written import planned, problems, ran


class Ends(Step, frozen=True, kw_only=True):
    """Ends in a way that it is told."""

    how: str

    async def run(self, ctx: Any) -> Outcome:
        """End."""
        made: Any = ENDS[self.how]
        if self.how == "thread":
            made = await ctx.blocking(made)
        found: Outcome = await made() if asyncio.iscoroutinefunction(made) else made()
        return found


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


async def cancelled_inside() -> None:
    task = asyncio.ensure_future(asyncio.sleep(3600))
    task.cancel()
    await task


def raising(error: BaseException) -> Any:
    def end() -> Any:
        raise error

    return end


ODD: Any = "tomorrow"
ENDS: dict[str, Any] = {
    "task": cancelled_inside,
    "exit": lambda: sys.exit(3),
    "thread": lambda: next(iter([])),
    "mute": raising(Mute()),
    "type": raising(StepError(5, 6)),  # type: ignore[arg-type]
    "after": raising(StepError("busy", "later", retry_after=ODD)),
    "number": lambda: Done({"n": 10**5000}),
    "until": lambda: Suspend(until=ODD),
    "usage": lambda: Done(1, usage=ODD),
    "reason": lambda: Reject(5),  # type: ignore[arg-type]
    "details": lambda: Reject("no", {"a": object()}),
}


class Fine(Step, frozen=True, kw_only=True):
    """Does nothing; those below say something odd besides."""

    async def run(self, ctx: Any) -> Outcome:
        """Nothing."""
        return Done(None)


class Reaching(Fine, frozen=True, kw_only=True):
    """Reaches for no tuple."""

    def reaches(self) -> Any:
        """No reach."""
        return (1, ("telepathy", ("a",), "x"))


class Attaching(Fine, frozen=True, kw_only=True):
    """Names no file."""

    def attached(self) -> Any:
        """A pointer and a text."""
        return ((("file",), "file"),)


class Finding_(Fine, frozen=True, kw_only=True):
    """Finds something nowhere."""

    def check(self) -> tuple[Finding, ...]:
        """One finding that is none, one that is."""
        print("checked")
        return (Finding(None, "X1", None), Finding((), "X1", "a true one"))  # type: ignore[arg-type]


class Spawning(Fine, frozen=True, kw_only=True):
    """Does not say what it starts."""

    @property
    def spawns(self) -> bool:  # type: ignore[override]
        """Raise."""
        raise ValueError("no idea")


class Sinking(Fine, frozen=True, kw_only=True):
    """Declares no names."""

    sinks: ClassVar[Any] = 5


class Edited(Fine, frozen=True, kw_only=True):
    """Has no number."""

    edition: ClassVar[Any] = "two"


class Nowhere(Fine, frozen=True, kw_only=True):
    """Has an annotation that nobody can follow."""

    what: Missing  # type: ignore[name-defined]  # noqa: F821


class Sometimes(Fine, frozen=True, kw_only=True):
    """Starts programs only with some settings."""

    program: str = ""

    def spawning(self) -> bool:
        """With a program."""
        return bool(self.program)


CLASSES = (Ends, Reaching, Attaching, Finding_, Spawning, Sinking, Edited, Nowhere, Sometimes)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, under their own names."""
    found = tuple(kinds.Plugin("steps", f"h_{one.__name__}", f"{__name__}:{one.__name__}", "h", "1") for one in CLASSES)
    monkeypatch.setattr(kinds, "_added", lambda family, path: found if family == "steps" else ())


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("task", "plugin.CancelledError", "h_Ends raised CancelledError"),
        ("exit", "plugin.SystemExit", "h_Ends raised SystemExit: 3"),
        ("thread", "plugin.RuntimeError", "the work raised StopIteration"),
        ("mute", "plugin.Mute", "h_Ends raised Mute ("),
        ("type", "plugin.5", "6"),
        ("after", "plugin.busy", "later"),
        ("number", "invalid_output", "n is a number of more than 4,300 digits"),
        ("until", "plugin.TypeError", "gave Suspend with an `until` that is no number of seconds"),
        ("usage", "plugin.TypeError", "gave Done with a `usage` that is no tramai.step.Usage"),
        ("reason", "plugin.TypeError", "gave Reject with a `reason` that is no text"),
        ("details", "plugin.TypeError", "gave Reject with `details` that cannot be kept: a has the type object"),
    ],
)
def test_whatever_an_attempt_ends_with_it_fails_the_step_and_can_be_caught(how: str, kind: str, said: str) -> None:
    steps = f"- id: a\n  retry: {{max_attempts: 2, delay: 0s}}\n  plugin: {{use: h_Ends, with: {{how: {how}}}}}\n"
    result = ran(steps)
    assert result.error is not None
    assert result.error["type"] == kind
    assert said in str(result.error["message"])
    caught = ran(steps + "  catch: [{output: 7}]\n", "outputs: {o: '${{ steps.a.output }}'}")
    assert caught.outputs == {"o": 7}


def test_a_run_that_a_library_cancels_is_a_bug_that_is_told_as_one() -> None:
    with pytest.raises(BugError, match="cancelled from inside"):
        driver.Loop(Interrupt()).run(cancelled_inside())


def test_a_step_that_is_cancelled_from_outside_stays_cancelled() -> None:
    async def waiting() -> None:
        with translated("x"):
            await asyncio.sleep(3600)

    async def main() -> None:
        task = asyncio.ensure_future(waiting())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("Reaching", "is broken: `reaches` gave 1 among others"),
        ("Attaching", "is broken: `attached` gave (('file',), 'file') among others"),
        ("Spawning", "is broken: `spawning` raised ValueError: no idea"),
        ("Sinking", "has `sinks` that are no set of names of settings"),
        ("Edited", "has an `edition` that is no whole number from 1 on"),
        ("Nowhere", "has settings that no schema can describe: name 'Missing' is not defined"),
    ],
)
def test_an_odd_class_is_a_finding_at_the_step(use: str, said: str) -> None:
    ((code, message),) = problems(f"- id: a\n  plugin: {{use: h_{use}}}\n")
    assert code == "TRM430"
    assert said in message


def test_a_finding_that_is_none_hides_no_other_and_what_a_check_prints_is_no_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = problems("- id: a\n  plugin: {use: h_Finding_}\n")
    assert [code for code, _ in found] == ["TRM430", "TRM431"]
    assert found[1][1] == "a true one"
    out, err = capsys.readouterr()
    assert (out, "checked" in err) == ("", True)


def test_whether_a_program_is_started_may_depend_on_the_settings() -> None:
    use = "- id: a\n  plugin: {use: h_Sometimes, with: {program: '%s'}}\n"
    assert planned(use % "ls").spawns
    assert not planned(use % "").spawns
