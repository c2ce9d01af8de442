"""`plugin`: a step type that another package brings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Any, ClassVar, TypeVar, cast

from msgspec import Meta, structs

from ..codec import Json
from ..errors import PluginUnusable, Pointer
from ..expression import Value
from ..running import Context, Known
from ..step import Finding, Outcome, Replay, Step, StepError

T = TypeVar("T")

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

    def spawning(self) -> bool:
        """Whether it does with these settings."""
        return self._says("spawning", self.spawns, bool)

    def _has(self, name: str, otherwise: T, kind: type) -> T:
        """What the class declares, if it can be meant."""
        try:
            said: Any = getattr(self.inner, name)
        except Exception:  # noqa: BLE001 - the edge to a foreign class, or nobody is there to ask
            return otherwise
        return cast(T, said) if isinstance(said, kind) else otherwise

    def _says(self, name: str, otherwise: T, kind: type, *given: Any) -> T:
        """What the class says, if it says something that can be meant; `check` tells where it does not."""
        try:
            said: Any = getattr(self.inner, name)(*given)
        except Exception:  # noqa: BLE001 - the edge to a foreign class, or nobody is there to ask
            return otherwise
        return cast(T, said) if isinstance(said, kind) else otherwise

    @property
    def spawns(self) -> bool:  # type: ignore[override]
        """Whether it starts child processes."""
        return self._has("spawns", False, bool)

    @property
    def sinks(self) -> frozenset[str]:  # type: ignore[override]
        """All of `with`, unless the class says which of its settings may hold a secret."""
        said: frozenset[str] = self._has("sinks", Step.sinks, Collection)
        if said is Step.sinks:
            return frozenset({"with"})
        return frozenset(f"with.{name}" for name in said)

    def replay(self) -> Replay:
        """What the class says: `non_replayable`, if it says nothing."""
        return self._says("replay", Replay.NON_REPLAYABLE, Replay)

    def pure(self) -> bool:
        """Only if the class says so."""
        return self._says("pure", False, bool)

    def needs_loop(self) -> bool:
        """Unless the class never waits on one."""
        return self._says("needs_loop", True, bool)

    def check(self) -> tuple[Finding, ...]:
        """A step type that is installed and can be used; then what it finds wrong itself."""
        from ._plugin_check import findings

        return tuple(findings(self))

    def shape(self, known: Known) -> dict[str, Any] | None:
        """What the class knows."""
        return self._says("shape", None, dict, known)

    def record(self, known: Known) -> dict[str, Any] | None:
        """What the class knows."""
        return self._says("record", None, dict, known)

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """What the class says that it reaches for."""
        from ._plugin_check import is_reach

        found: tuple[Any, ...] = self._says("reaches", (), tuple)
        return tuple((kind, ("with", *pointer), *more) for kind, pointer, *more in filter(is_reach, found))

    def attached(self) -> tuple[tuple[Pointer, Any], ...]:
        """Files that its settings name."""
        from ._plugin_check import is_attached

        found: tuple[Any, ...] = self._says("attached", (), tuple)
        return tuple((("with", *pointer), file) for pointer, file in filter(is_attached, found))

    def able(self) -> None:
        """The package is here, and understands the settings that the run was started with."""
        if self.inner is None:
            from ._plugin_check import missing

            raise missing(self)

    def output(self, result: Any) -> Json:
        """What the class makes of the result: the result, if it says nothing."""
        inner = self.inner
        if inner is None:
            return result  # type: ignore[no-any-return]
        from ..translating import translated

        with translated(self.name):
            return inner.output(result)

    def note(self, result: Any) -> str | None:
        """A few words of the class."""
        return self._says("note", None, str, result)

    async def run(self, ctx: Context) -> Outcome:
        """Let it do its work; whatever it raises is a failure of the step."""
        inner = self.inner
        if inner is None:
            from ._plugin_check import missing

            error = missing(self)
            raise StepError("plugin.NotInstalled", error.message, hint=error.hint)
        from ..translating import translated
        from ._plugin_outcome import fitting

        with translated(self.name):
            outcome = await inner.run(ctx)
        return fitting(self.name, outcome)
