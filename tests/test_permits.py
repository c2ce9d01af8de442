"""Permits: what is not named is refused, in the file where it can be seen and in the run before any effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tramai import reach
from tramai.permits import Permits, host_allowed, hosts_covered
from tramai.step import StepError
from tramai.steps.http import Http
from tramai.steps.shell import Shell

from .reading import HEAD, examine, planned, said, sound
from .step_context import StepContext, made, run

ASKING = "{id: a, http: {get: 'https://a.io', follow_redirects: true, allow_hosts: "


def permitting(permits: str, *steps: str) -> str:
    return f"{HEAD}permits: {permits}\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)


@pytest.mark.parametrize(
    ("permits", "step"),
    [
        ("{shell: [git]}", "{id: a, shell: {argv: [git, status]}}"),
        ("{shell: [bash]}", "{id: a, shell: make}"),
        ("{shell: [sh]}", "{id: a, shell: make}"),
        ("{shell: [/usr/bin/git]}", "{id: a, shell: {argv: [/usr/bin/git, status]}}"),
        ("{shell: [git]}", "{id: a, shell: {argv: ['${{ run.id }}', status]}}"),
        ("{http: [api.github.com]}", "{id: a, http: {get: 'https://API.github.com/x'}}"),
        ("{http: ['*.github.com']}", "{id: a, http: {get: 'https://api.github.com:8443/x?y'}}"),
        ("{http: [a.b.io]}", "{id: a, http: {get: '${{ run.id }}'}}"),
        ("{http: [a.io, '*.b.io']}", ASKING + "[a.io, '*.c.b.io']}}"),
        ("{http: [a.io]}", "{id: a, http: {get: 'https://a.io', allow_hosts: [a.io, b.io]}}"),
        ("{}", "{id: a, local: 1}"),
    ],
)
def test_what_is_named_is_let_through(permits: str, step: str) -> None:
    sound(permitting(permits, step))


@pytest.mark.parametrize(
    ("permits", "step", "what"),
    [
        ("{shell: [git]}", "{id: a, shell: {argv: [rm, x]}}", "the program rm is not permitted"),
        ("{shell: [git]}", "{id: a, shell: {argv: [/tmp/git, x]}}", "the program /tmp/git is not permitted"),
        ("{shell: [git]}", "{id: a, shell: make}", "scripts are not permitted"),
        ("{http: [a.io]}", "{id: a, shell: {run: make}}", "scripts are not permitted"),
        ("{}", "{id: a, shell: make}", "scripts are not permitted"),
        ("{http: [a.io]}", "{id: a, http: {get: 'https://b.io'}}", "the host b.io is not permitted"),
        ("{http: ['*.a.io']}", "{id: a, http: {get: 'https://a.io'}}", "the host a.io is not permitted"),
        ("{http: ['*.a.io']}", "{id: a, http: {get: 'https://xa.io'}}", "the host xa.io is not permitted"),
        ("{http: [a.io]}", ASKING + "[a.io, b.io]}}", "the host b.io is not permitted"),
        ("{http: [a.io]}", ASKING + "['*.a.io', a.io]}}", "the host *.a.io is not permitted"),
        (
            "{shell: [git]}",
            "{id: a, foreach: {items: [1], do: [{id: b, shell: {argv: [ls]}}]}}",
            "the program ls is not permitted",
        ),
    ],
)
def test_what_is_not_named_is_refused_in_the_file(permits: str, step: str, what: str) -> None:
    found = examine(permitting(permits, step))[1]
    assert [(problem.code, problem.message) for problem in found] == [("TRM386", what)]
    assert found[0].related[0].position.line == 3
    assert "add " in (found[0].hint or "")


@pytest.mark.parametrize(
    ("permits", "hint"),
    [
        ("{http: ['https://a.io/x']}", "write the host alone: a.io"),
        ("{http: ['a.io:443']}", "without a port"),
        ("{http: ['*']}", "leave `permits` out"),
        ("{http: ['api.*.io']}", "*.example.com"),
        ("{shell: ['git status']}", "name the program alone: git"),
        ("{shell: ['*']}", "leave `permits` out"),
        ("{write: [../x]}", "in it"),
        ("{shell: ['${{ env.X }}']}", "write the value itself"),
    ],
)
def test_a_permit_names_one_thing(permits: str, hint: str) -> None:
    found = examine(permitting(permits, "{id: a, local: 1}"))[1]
    assert [problem.code for problem in found] == ["TRM387"]
    assert hint in (found[0].hint or "")


def test_what_verify_asks_needs_a_permit_too() -> None:
    step = "{id: a, shell: {argv: [git, push]}, verify: {shell: {argv: [curl, x]}, replay: replayable}}"
    assert said(permitting("{shell: [git]}", step)) == ["TRM386 the program curl is not permitted"]


def test_hosts_are_covered_by_name_or_from_above() -> None:
    assert host_allowed("A.io", ["a.io"])
    assert not host_allowed("x.a.io", ["a.io"])
    assert hosts_covered("*.x.a.io", ["*.a.io"])
    assert hosts_covered("*.a.io", ["*.a.io"])
    assert not hosts_covered("*.a.io", ["a.io", "*.x.a.io"])


def standing_in(folder: Path, scope: dict[str, str]) -> StepContext:
    context = StepContext(scope)
    context.cwd = str(folder)
    return context


def test_a_program_known_only_at_run_time_is_refused_before_it_starts(tmp_path: Path) -> None:
    step = made(Shell, argv=["${{ program }}", "ran"])
    context = standing_in(tmp_path, {"program": "touch"})
    context.permits = (Permits(shell=("git",)),)
    with pytest.raises(StepError, match="the program touch is not permitted") as refused:
        run(step, context)
    assert refused.value.type == "refused"
    assert not (tmp_path / "ran").exists()
    context.permits = (Permits(shell=("git", "touch")),)
    run(step, context)
    assert (tmp_path / "ran").exists()


def test_of_several_permits_each_must_name_it(tmp_path: Path) -> None:
    context = standing_in(tmp_path, {})
    context.permits = (Permits(shell=("bash",)), Permits(shell=("git",)))
    with pytest.raises(StepError, match="a script is not permitted"):
        run(made(Shell, run="touch ran"), context)
    assert not (tmp_path / "ran").exists()


def test_a_host_known_only_at_run_time_is_refused_before_it_is_asked() -> None:
    context = StepContext({"host": "127.0.0.1:9"})
    context.permits = (Permits(http=("api.github.com",)),)
    with pytest.raises(StepError, match=r"the host 127\.0\.0\.1 is not permitted") as refused:
        run(made(Http, get="http://${{ host }}/", allow_private=True), context)
    assert refused.value.type == "refused"


def test_permits_are_part_of_the_definition_also_when_they_name_nothing() -> None:
    from tramai import plan

    none, empty = planned(HEAD + "steps:\n  - {id: a, local: 1}\n"), planned(permitting("{}", "{id: a, local: 1}"))
    assert none.digest != empty.digest
    assert plan.restore(empty.canonical).workflow.permits == Permits()
    assert plan.restore(none.canonical).workflow.permits is None


def test_what_a_workflow_reaches_for_is_gathered_with_what_only_the_run_knows() -> None:
    flow = sound(
        HEAD + "steps:\n  - {id: a, shell: make}\n  - {id: b, shell: {argv: ['${{ run.id }}']}}\n"
        "  - {id: c, http: {get: 'https://a.io/${{ run.id }}'}}\n  - {id: d, http: {get: 'https://${{ run.id }}'}}\n"
    )
    found = reach.needs(flow.steps.walk(), None)
    assert found.permits == Permits(shell=("bash",), http=("a.io",))
    assert found.unknown == (("shell", "b"), ("http", "d"))
    assert reach.needs(flow.steps.walk(), Permits(shell=("sh",))).missing == (("http", "a.io"),)
