"""What changed between two definitions."""

import pytest

from tramai.diff import diff

from .reading import HEAD, planned

BASE = (
    HEAD
    + """\
version: "1"
inputs: {repo: {type: string}, limit: {type: integer, default: 20}}
limits: {timeout: 2h}
state: {total: {initial: 0}}
steps:
  - {id: fetch, shell: {run: make fetch, env: {REPO: "${{ inputs.repo }}"}}, timeout: 90s}
  - {id: parse, local: 1}
  - id: choice
    branch:
      select: ${{ inputs.repo }}
      cases:
        low: [{id: a, local: 1}, {id: b, local: 2}]
        high: [{id: c, local: 3}]
      default: []
  - {id: report, local: done}
outputs: {answer: "${{ steps.report.output }}"}
"""
)


def changes(*edits: tuple[str, str]) -> list[str]:
    text = BASE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return [difference.text for difference in diff(planned(BASE), planned(text))]


def test_equal_definitions_have_no_difference() -> None:
    assert changes() == []
    assert changes(("90s", "1m30s")) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version: "1"', 'version: "2"', "`version` changed: 1 → 2"),
        ("name: demo", "name: other", "`name` changed: demo → other"),
        ("timeout: 2h", "timeout: 1h", "`limits.timeout` changed: 2h → 1h"),
        ("limits: {timeout: 2h}", "limits: {}", "`limits.timeout` was removed: 2h"),
        ("default: 20", "default: 21", "`inputs.limit.default` changed: 20 → 21"),
        ("initial: 0", 'initial: "0"', '`state.total.initial` changed: 0 → "0"'),
        ("make fetch", "make all", "step `fetch`: `shell.run` changed: make fetch → make all"),
        ("timeout: 90s", "timeout: 2m", "step `fetch`: `timeout` changed: 1m30s → 2m"),
        ("REPO:", "REPOS:", None),
        ("id: parse, local: 1", "id: parse, local: true", "step `parse`: `local.value` changed: 1 → true"),
        ("id: parse, local", "id: parse, when: '${{ true }}', local", "step `parse`: `when` was added: ${{ true }}"),
        ("  - {id: parse, local: 1}\n", "", "step `parse` was removed"),
        ("  - {id: parse, local: 1}\n", "  - {id: parse, local: 1}\n  - {id: new, local: 5}\n", "step `new` was added"),
        ("id: parse", "id: read", "step `parse` is now called `read`"),
        ("        high:", "        urgent:", "step `choice`: `branch` changed: cases.high → cases.urgent"),
        ("answer: ", "reply: ", None),
        ("{id: b, local: 2}", "{id: b, local: 4}", "step `b`: `local.value` changed: 2 → 4"),
    ],
)
def test_one_change_is_told_as_one(old: str, new: str, said: str | None) -> None:
    found = changes((old, new))
    if said is None:
        assert len(found) == 2
    else:
        assert found == [said]


def test_a_step_moved_in_its_block_is_the_only_one_named() -> None:
    moved = ("  - {id: parse, local: 1}\n", "  - {id: more, local: 7}\n  - {id: parse, local: 1}\n")
    there = ("  - {id: report", "  - {id: last, local: 1}\n  - {id: report")
    first = planned(BASE.replace(*moved).replace(*there))
    steps = ("  - {id: more, local: 7}\n", ""), ("  - {id: report", "  - {id: more, local: 7}\n  - {id: report")
    text = BASE.replace(*moved).replace(*there)
    for old, new in steps:
        text = text.replace(old, new, 1)
    assert [difference.text for difference in diff(first, planned(text))] == [
        "step `more` moved: after `fetch` → after `last`"
    ]


def test_a_step_moved_to_another_block_says_from_where_to_where() -> None:
    edits = (", {id: b, local: 2}]", "]"), ("[{id: c, local: 3}]", "[{id: c, local: 3}, {id: b, local: 2}]")
    assert changes(*edits) == ["step `b` moved: in `choice` cases.low, after `a` → in `choice` cases.high, after `c`"]


def test_a_container_taken_away_takes_its_steps_with_it() -> None:
    start, end = BASE.index("  - id: choice"), BASE.index("  - {id: report")
    assert changes((BASE[start:end], "")) == ["step `choice` was removed"]


def test_a_container_added_is_one_change() -> None:
    added = "  - {id: all, foreach: {items: [1], do: [{id: x, local: 1}, {id: y, local: 1}]}}\n"
    assert changes(("  - {id: report", added + "  - {id: report")) == ["step `all` was added"]


def test_a_block_added_or_removed_is_a_change_of_its_container() -> None:
    assert changes(("      default: []\n", "")) == ["step `choice`: `branch` was removed: default"]
    assert changes(("      default: []\n", "        odd: []\n      default: []\n")) == [
        "step `choice`: `branch` was added: cases.odd"
    ]


def test_another_verb_shows_both() -> None:
    found = changes(("{id: parse, local: 1}", "{id: parse, gate: '${{ true }}'}"))
    assert "step `parse`: `local.value` was removed: 1" in found
    assert "step `parse`: `gate.check` was added: ${{ true }}" in found


def test_a_renamed_container_keeps_its_steps() -> None:
    assert changes(("id: choice", "id: pick")) == ["step `choice` is now called `pick`"]


def test_long_texts_are_cut_to_where_they_part() -> None:
    long = "x" * 200
    [found] = diff(
        planned(BASE.replace("make fetch", f"echo {long} one")), planned(BASE.replace("make fetch", f"echo {long} two"))
    )
    assert (found.old, found.new) == (f"…{'x' * 14} one", f"…{'x' * 14} two")


def test_control_characters_are_shown_not_sent() -> None:
    [found] = diff(planned(BASE), planned(BASE.replace("run: make fetch", 'run: "make\\e[31m\\nfetch"')))
    assert found.new == "make\\x1b[31m\\nfetch"


def test_a_difference_names_the_step_and_the_field() -> None:
    [found] = diff(planned(BASE), planned(BASE.replace("make fetch", "make all")))
    assert (found.kind, found.step, found.what) == ("changed", "fetch", "shell.run")


def test_a_stored_form_is_compared_without_its_version() -> None:
    other = planned(BASE.replace('version: "1"', 'version: "2"').replace("make fetch", "make all"))
    assert [difference.what for difference in diff(planned(BASE).canonical, other)] == ["shell.run"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("make fetch", "make all"), ("id: a,", "id: aa,"), ("default: 20", "default: 20.0"), ("2h", "2h0m")],
)
def test_definitions_differ_exactly_when_digests_do(old: str, new: str) -> None:
    other = planned(BASE.replace(old, new, 1))
    assert bool(diff(planned(BASE), other)) == (other.digest != planned(BASE).digest)


HANDLED = """\
tramai: 1
name: demo
steps:
  - id: one
    local: 1
    catch:
      - on: [timeout]
        do: [{id: note, local: 1}]
catch:
  - do: [{id: alarm, local: 1}]
    output: {a: 1}
finally:
  - {id: tidy, local: 1}
"""


def test_changes_in_catch_and_finally_are_told_step_by_step() -> None:
    def changes(old: str, new: str) -> list[str]:
        return [one.text for one in diff(planned(HANDLED), planned(HANDLED.replace(old, new)))]

    assert changes("note, local: 1", "note, local: 2") == ["step `note`: `local.value` changed: 1 → 2"]
    assert changes("alarm, local: 1", "alarm, local: 2") == ["step `alarm`: `local.value` changed: 1 → 2"]
    assert changes("tidy, local: 1", "tidy, local: 2") == ["step `tidy`: `local.value` changed: 1 → 2"]
    assert changes("{id: tidy, local: 1}", "{id: tidied, local: 1}") == ["step `tidy` is now called `tidied`"]
    assert changes("finally:\n  - {id: tidy, local: 1}\n", "") == ["step `tidy` was removed"]
    assert changes("on: [timeout]", "on: [network]") == [
        'step `one`: `catch` changed: [{"on":["timeout"]}] → [{"on":["network"]}]'
    ]
    assert changes("{a: 1}", "{a: 2}") == ['`catch` changed: [{"output":{"a":1}}] → [{"output":{"a":2}}]']
