"""`plugin`: a step type that another package brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from msgspec import Meta, structs

from ..codec import Json
from ..errors import PluginUnusable, Pointer
from ..expression import Value
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Reject, Replay, Step, StepError, Suspend

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class Plugin(Step, frozen=True, kw_only=True, rename={"with_": "with"}):
    """Do what a step type of another package does. The package has to be installed where tramai is; its own schema
    says which settings there are."""

    own: ClassVar[frozenset[str]] = frozenset({"use", "with"})

    use: Annotated[
        str,
        Meta(
            description="The name of the step type, as its package declares it.",
            examples=["slack"],
            extra_json_schema={"pattern": _NAME},
        ),
    ]
    with_: Annotated[
        Value,
        Meta(
            description="Its settings.",
            examples=[{"channel": "#releases"}],
            extra_json_schema={"type": "object"},
        ),
    ] = Value({})
    """A Value for as long as no class is known that could say more: then the package's own Struct."""

    @property
    def name(self) -> str:
        """The name alone. Once the class is known, `use` tells its edition too, and so does the digest: `slack@1`."""
        return self.use.partition("@")[0]

    @property
    def inner(self) -> Step | None:
        """The package's own step; None when it is not to be had."""
        held: Any = self.with_
        return held if isinstance(held, Step) else None

    def adopt(self, make: Callable[[type[Step], str], Step | None]) -> Step:
        """With the settings that the package's class makes of `with`."""
        from ._plugin_kind import load

        try:
            kind = load(self.name)
        except (KeyError, PluginUnusable):
            return self
        use = f"{self.name}@{kind.edition}"
        if self.use not in (self.name, use):
            return self
        made: Any = make(kind, "with")
        return self if made is None else structs.replace(self, use=use, with_=made)

    @property
    def spawns(self) -> bool:  # type: ignore[override]
        """Whether it starts child processes."""
        return self.inner is not None and self.inner.spawns

    @property
    def sinks(self) -> frozenset[str]:  # type: ignore[override]
        """All of `with`, unless the class says which of its settings may hold a secret."""
        inner = self.inner
        if inner is None or inner.sinks is Step.sinks:
            return frozenset({"with"})
        return frozenset(f"with.{name}" for name in inner.sinks)

    def replay(self) -> Replay:
        """What the class says: `non_replayable`, if it says nothing."""
        return self.inner.replay() if self.inner is not None else Replay.NON_REPLAYABLE

    def pure(self) -> bool:
        """Only if the class says so."""
        return self.inner is not None and self.inner.pure()

    def needs_loop(self) -> bool:
        """Unless the class never waits on one."""
        return self.inner is None or self.inner.needs_loop()

    def check(self) -> tuple[Finding, ...]:
        """A step type that is installed and can be used; then what it finds wrong itself."""
        from ._plugin_check import findings

        return tuple(findings(self))

    def shape(self, known: Known) -> dict[str, Any] | None:
        """What the class knows."""
        return self.inner.shape(known) if self.inner is not None else None

    def record(self, known: Known) -> dict[str, Any] | None:
        """What the class knows."""
        return self.inner.record(known) if self.inner is not None else None

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """What the class says that it reaches for."""
        found = self.inner.reaches() if self.inner is not None else ()
        return tuple((kind, ("with", *pointer), *more) for kind, pointer, *more in found)

    def attached(self) -> tuple[tuple[Pointer, Any], ...]:
        """Files that its settings name."""
        found = self.inner.attached() if self.inner is not None else ()
        return tuple((("with", *pointer), file) for pointer, file in found)

    def able(self) -> None:
        """The package is here, and understands the settings that the run was started with."""
        if self.inner is None:
            from ._plugin_check import missing

            raise missing(self)

    def output(self, result: Any) -> Json:
        """What the class makes of the result: the result, if it says nothing."""
        return self.inner.output(result) if self.inner is not None else result

    def note(self, result: Any) -> str | None:
        """A few words of the class."""
        return self.inner.note(result) if self.inner is not None else None

    async def run(self, ctx: Context) -> Outcome:
        """Let it do its work; whatever it raises is a failure of the step."""
        inner = self.inner
        if inner is None:
            from ._plugin_check import missing

            error = missing(self)
            raise StepError("plugin.NotInstalled", error.message, hint=error.hint)
        from ..translating import translated

        with translated(self.name):
            outcome = await inner.run(ctx)
        if not isinstance(outcome, Done | Suspend | Reject):
            what = f"the step type {self.name} gave {type(outcome).__name__} in the place of Done, Suspend or Reject"
            raise StepError("plugin.TypeError", what)
        return outcome
