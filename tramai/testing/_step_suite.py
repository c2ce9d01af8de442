"""What a step type of another package promises: it can be read, written down, carried out, cut off and gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from .. import build, document, engine, inputs, kinds, plan, workflow
from ..check import shapes
from ..check.scene import Scene
from ..codec import encode
from ..event import Event, StepStarted
from ..interrupt import Interrupt
from ..plan import Plan
from ..redact import Redactor
from ..schema import schema_problems
from ..step import Finding, Replay, Step
from ..steps import _plugin_kind
from ..steps.plugin import Plugin
from ..store import Mark
from ..stores.memory import Memory
from ._fragile import FOR_EVER, Cut, Fragile

RUN = "contract"
_ID = "under_test"


class Given:
    """What the author of a step type says, and a workflow of one step that follows from it."""

    step: ClassVar[type[Step]]
    """The class."""
    name: ClassVar[str]
    """What workflows call it after `use`."""
    top: ClassVar[Mapping[str, Any]] = {}
    """Other keys of a workflow that `settings` refer to: `inputs` with defaults, `secrets`."""
    secrets: ClassVar[Mapping[str, str]] = {}
    """Values for the secrets that `top` declares."""

    def settings(self, folder: Path) -> dict[str, Any]:
        """The `with` of a workflow file with which the step succeeds; `folder` is empty and the test's own."""
        raise NotImplementedError("give settings with which the step succeeds")

    @pytest.fixture(autouse=True)
    def registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The class is found under its name, installed or not, and nothing else is."""
        value = f"{self.step.__module__}:{self.step.__qualname__}"
        only = kinds.Plugin("steps", self.name, value, "the class under test", "0")
        monkeypatch.setattr(kinds, "added", lambda family: (only,) if family == "steps" else ())

    def written(self, settings: dict[str, Any]) -> document.Document:
        """A workflow file with the step in it."""
        step = {"id": _ID, "plugin": {"use": self.name, "with": settings}}
        outputs = {"value": f"${{{{ steps.{_ID}.output }}}}"}
        data = {"tramai": 1, "name": "contract", **self.top, "steps": [step], "outputs": outputs}
        return document.parse(json.dumps(data).encode(), file="contract.yaml")

    def planned(self, settings: dict[str, Any]) -> Plan:
        """Its plan; the test fails with every problem in it."""
        found, problems = workflow.examine(self.written(settings))
        said = [f"{one.code} {one.message} ({one.hint})" for one in problems if one.severity == "error"]
        assert not said, "these settings are refused: " + "; ".join(said)
        assert found is not None
        return plan.of(found)

    def held(self, made: Plan) -> Step:
        """The step itself."""
        outer = made.nodes[_ID].step
        assert isinstance(outer, Plugin)
        assert outer.inner is not None
        return outer.inner


class Reading(Given):
    """A class that tramai takes; settings that are described, checked, and written down without loss."""

    def test_the_class_is_a_step_that_a_package_may_bring(self) -> None:
        assert _plugin_kind.load(self.name) is self.step, "name the class itself, not a subclass"

    def test_its_entry_point_leads_to_the_class(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        found = [one for one in kinds.added("steps") if one.name == self.name]
        if not found:
            pytest.skip(f"no package that is installed here brings the step type {self.name}")
        assert [one.load() for one in found] == [self.step]

    def test_the_class_and_every_setting_are_described(self) -> None:
        assert self.step.__doc__, "its docstring is what `tramai schema step` shows"
        found = _plugin_kind.described(self.step)
        properties = found.definitions[found.top]["properties"]
        bare = [key for key, said in properties.items() if not said.get("description")]
        assert bare == [], "describe them: Annotated[…, msgspec.Meta(description=…)]"

    def test_the_settings_are_accepted(self, tmp_path: Path) -> None:
        assert isinstance(self.held(self.planned(self.settings(tmp_path))), self.step)

    def test_an_unknown_setting_is_refused(self, tmp_path: Path) -> None:
        _, problems = workflow.examine(self.written({**self.settings(tmp_path), "no_such_setting": 1}))
        assert [one.code for one in problems if one.severity == "error"] == ["TRM104"]

    def test_its_own_check_gives_findings_and_changes_nothing(self, tmp_path: Path) -> None:
        step = self.held(self.planned(self.settings(tmp_path)))
        found = step.check()
        assert all(isinstance(one, Finding) for one in found)
        assert step.check() == found

    def test_what_is_stored_of_the_settings_makes_the_same_settings(self, tmp_path: Path) -> None:
        made = self.planned(self.settings(tmp_path))
        again = plan.restore(made.canonical)
        assert again.digest == made.digest
        assert again.nodes[_ID].step == made.nodes[_ID].step
        fresh = Plan(build.rebuild(made.data))
        assert fresh.canonical == made.canonical

    def test_its_replay_policy_is_one(self, tmp_path: Path) -> None:
        assert self.held(self.planned(self.settings(tmp_path))).replay() in Replay


class Carrying(Given):
    """It succeeds, gives JSON, and can be cut off at any moment."""

    def test_it_succeeds_and_gives_what_json_can_say(self, tmp_path: Path) -> None:
        result, store = self.carried(tmp_path)
        assert result.status == "completed", result.error
        value = result.outputs["value"]  # type: ignore[index, call-overload]
        assert json.loads(encode(value)) == value
        note = self.held(self.planned(self.settings(tmp_path))).note(value)
        assert note is None or isinstance(note, str)
        assert store.journal(RUN)[-1].mark is Mark.COMPLETED

    def test_its_output_has_the_shape_that_it_promises(self, tmp_path: Path) -> None:
        made = self.planned(self.settings(tmp_path))
        promised = self.held(made).shape(shapes.known(Scene(made.workflow)))
        result, _ = self.carried(tmp_path)
        assert schema_problems(result.outputs["value"], promised or {}) == []  # type: ignore[index, call-overload]

    def test_no_secret_is_stored_or_shown(self, tmp_path: Path) -> None:
        if not self.secrets:
            pytest.skip("no secrets are given")
        result, store = self.carried(tmp_path)
        kept = encode([result.outputs, [repr(record) for record in store.journal(RUN)]])
        assert Redactor(self.secrets.values()).text(kept) == kept

    def test_cut_off_before_its_end_was_stored_it_does_what_its_policy_says(self, tmp_path: Path) -> None:
        made = self.planned(self.settings(tmp_path))
        policy = made.nodes[_ID].replay
        began = policy is not Replay.REPLAYABLE
        store = Fragile(Memory(), Cut(write=2 if began else 1, before=True))
        self.carried(tmp_path, store=store)
        assert store.was_cut
        store.revive()
        result = engine.resume(RUN, store=store, options=self._options(tmp_path))
        if policy is Replay.NON_REPLAYABLE:
            assert result.status == "blocked", "what may have happened is not done again unasked"
        else:
            assert result.status == "completed", f"what is {policy} can be done again: {result.error}"

    def test_a_resume_does_not_carry_it_out_again(self, tmp_path: Path) -> None:
        store = Fragile(Memory(), None)
        first, _ = self.carried(tmp_path, store=store)
        writes = store.writes
        again = engine.resume(RUN, store=store, options=self._options(tmp_path))
        assert (again.outputs, store.writes) == (first.outputs, writes)

    def test_a_run_that_is_stopped_is_no_failure_of_the_step(self, tmp_path: Path) -> None:
        interrupt = Interrupt()

        def stop(event: Event) -> None:
            if isinstance(event, StepStarted):
                interrupt.set("test")

        result, store = self.carried(tmp_path, interrupt=interrupt, observers=[stop])
        assert result.status in ("interrupted", "completed", "blocked"), result.error
        assert [one for one in store.journal(RUN) if one.mark is Mark.FAILED] == []

    def carried(
        self, folder: Path, *, store: Any = None, interrupt: Any = None, observers: Any = ()
    ) -> tuple[engine.Result, Any]:
        """A run of the step in a folder, over a store."""
        made = self.planned(self.settings(folder))
        bound = inputs.bind(made.workflow.inputs, {})
        store = store or Memory()
        options = self._options(folder, interrupt)
        return engine.run(made, bound, store=store, options=options, observers=observers), store

    def _options(self, folder: Path, interrupt: Any = None) -> engine.Options:
        return engine.Options(
            run_id=RUN, cwd=str(folder), lease=FOR_EVER, secrets=dict(self.secrets), interrupt=interrupt
        )
