"""What `validate` knows of values: what cannot work, fields that are not there, and no false alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tramai import workflow
from tramai.check import filters
from tramai.expression import ExpressionError, Value, evaluate
from tramai.expression.filters import FILTERS, TESTS

from .reading import HEAD, codes, examine, said, sound

SAMPLES = {"string": "2", "number": 2, "boolean": True, "null": None, "array": [1, 2], "object": {"a": 1}}
ARGUMENTS = {
    "replace": '("a", "b")',
    "map": '("string")',
    "select": "",
    "selectattr": '("a")',
    "rejectattr": '("a")',
    "groupby": '("a")',
    "batch": "(2)",
    "slice": "(2)",
    "startswith": '("a")',
    "endswith": '("a")',
    "like": '("a*")',
    "divisibleby": "(2)",
}
KINDS = {"n": "type: integer", "f": "type: number", "t": "type: string", "b": "type: boolean", "m": "type: object"}
KINDS |= {"e": "enum: [low, high]", "l": "type: array, items: {type: string}"}
KINDS["r"] = "type: array, items: {type: object, properties: {id: {type: integer}, risk: {enum: [low, high]}}}"
HAVE = "inputs: {" + ", ".join(f"{name}: {{{kind}, description: d}}" for name, kind in KINDS.items()) + "}\n"


def using(use: str, *, key: str = "local") -> str:
    """A file in which one expression is used."""
    return (
        HEAD
        + HAVE
        + f"steps:\n  - id: one\n    {key}: >-\n      ${{{{ {use} }}}}\n"
        + ("" if key == "local" else "    local: 1\n")
    )


def refuses(use: str, kind: str) -> bool:
    """Whether an expression fails for the sample of a kind of data."""
    try:
        evaluate(Value(f"${{{{ {use} }}}}"), {"x": SAMPLES[kind]})
    except ExpressionError:
        return True
    return False


@pytest.mark.parametrize("name", sorted(filters.TAKES))
def test_what_a_filter_is_said_not_to_take_it_does_not_take(name: str) -> None:
    assert name in FILTERS
    use = f"x | {name}{ARGUMENTS.get(name, '')}"
    assert [kind for kind in SAMPLES if kind not in filters.TAKES[name] and not refuses(use, kind)] == []


@pytest.mark.parametrize("name", sorted(filters.TESTED))
def test_what_a_test_is_said_not_to_take_it_does_not_take(name: str) -> None:
    assert name in TESTS
    use = f"x is {name}{ARGUMENTS.get(name, '')}"
    assert [kind for kind in SAMPLES if kind not in filters.TESTED[name] and not refuses(use, kind)] == []


@pytest.mark.parametrize("name", sorted({*FILTERS} - {"default", "d"}))
def test_a_filter_gives_what_it_is_said_to_give(name: str) -> None:
    from tramai.check import algebra

    for value in SAMPLES.values():
        try:
            made = evaluate(Value(f"${{{{ x | {name}{ARGUMENTS.get(name, '')} }}}}"), {"x": value})
        except ExpressionError:
            continue
        assert algebra.kind(made) in algebra.kinds(filters.gives(name, algebra.of_data(value))), value


@pytest.mark.parametrize(
    ("use", "code"),
    [
        ("inputs.n | length", "TRM241"),
        ("inputs.n | upper", "TRM241"),
        ("inputs.t | round", "TRM241"),
        ("inputs.l | upper", "TRM241"),
        ("inputs.t | join(',')", "TRM241"),
        ("inputs.t | map('upper')", "TRM241"),
        ("inputs.b is odd", "TRM241"),
        ("inputs.t + 1", "TRM240"),
        ("inputs.t - 1", "TRM240"),
        ("1 + inputs.t", "TRM240"),
        ("inputs.l * 2", "TRM240"),
        ("inputs.t > 3", "TRM240"),
        ("inputs.t in inputs.n", "TRM240"),
        ("inputs.n in inputs.t", "TRM240"),
        ("-inputs.t", "TRM240"),
        ("inputs.n[1:2]", "TRM240"),
        ("inputs.l['a' ~ 'b']", "TRM240"),
        ("inputs.e == 'hihg'", "TRM242"),
        ("inputs.e == 3", "TRM242"),
        ("inputs.b == 'true'", "TRM242"),
        ("inputs.n == '3'", "TRM242"),
        ("inputs.n != none", "TRM242"),
        ("inputs.n in inputs.l", "TRM242"),
        ("inputs.r | selectattr('risk', '==', 'hi') | list", "TRM242"),
        ("inputs.r | selectattr('rsk', '==', 'high') | list", "TRM209"),
        ("inputs.r | map(attribute='rsk') | list", "TRM209"),
        ("(inputs.r | first).rsk", "TRM209"),
        ("inputs.r[0].rsk", "TRM209"),
        ("inputs.r[0]['rsk']", "TRM209"),
        ("inputs.n.x", "TRM209"),
        ("inputs.l.first", "TRM209"),
        ("{'a': 1}.b", "TRM209"),
        ("inputs.n and inputs.b", "TRM212"),
        ("not inputs.t", "TRM212"),
        ("1 if inputs.n else 2", "TRM212"),
    ],
)
def test_what_cannot_work_is_told_once(use: str, code: str) -> None:
    assert codes(using(use)) == [code]


@pytest.mark.parametrize(
    "use",
    [
        "inputs.n + 1 > 2 and inputs.b",
        "inputs.n / 2 < inputs.f",
        "inputs.t ~ inputs.n ~ inputs.l",
        "inputs.t + 'x' == 'yx'",
        "(inputs.l + ['x']) | length",
        "inputs.e == 'low' or inputs.e in ['low', 'high']",
        "(inputs.e | upper) == 'LOW'",
        "inputs.e | default('none') == 'none'",
        "inputs.m.anything.at.all == 3",
        "inputs.m['a'].b | length",
        "inputs.t[0] == 'a'",
        "inputs.l[inputs.n] | upper",
        "inputs.m[inputs.t] > 2",
        "inputs.r | selectattr('risk', '==', 'high') | map(attribute='id') | sum > 3",
        "inputs.r | map(attribute='rsk', default=1) | list",
        "inputs.n == 1.0",
        "inputs.n | string | length",
        "inputs.t | int(0) + 1",
        "inputs.b == true and not inputs.b",
        "inputs.n is number",
        "inputs.t if inputs.b else none",
        "(inputs.t if inputs.b else none) == none",
        "inputs.r | first | default({}) == {}",
        "inputs.n | int(default=0)",
        "inputs.t | list | length",
        "steps | length",
    ],
)
def test_what_may_work_is_let_through(use: str) -> None:
    assert [code for code in codes(using(use)) if code != "TRM202"] == []


@pytest.mark.parametrize(
    ("step", "said_of_it"),
    [
        (
            "{id: a, foreach: {items: '${{ inputs.t }}', do: [{id: b, local: 1}]}}",
            "`items` needs a list; this is always text",
        ),
        (
            "{id: a, foreach: {items: '${{ inputs.m }}', do: [{id: b, local: 1}]}}",
            "`items` needs a list; this is always a mapping",
        ),
        ("{id: a, parallel: {items: abc, do: [{id: b, local: 1}]}}", "`items` needs a list, not text"),
        (
            "{id: a, branch: {select: '${{ inputs.l }}', cases: {x: []}, default: []}}",
            "`select` needs text, a whole number or a boolean; this is always a list",
        ),
        (
            "{id: a, foreach: {items: [1], key: '${{ inputs.l }}', do: [{id: b, local: 1}]}}",
            "`key` needs text or a whole number; this is always a list",
        ),
        ("{id: a, delay: '${{ inputs.n }}'}", "`for` needs text such as 90s; this is always a number"),
        ("{id: a, delay: '${{ inputs.n }} minutes'}", "`${{ inputs.n }} minutes` is no duration"),
        ("{id: a, local: 1, when: '${{ inputs.t }}'}", "a condition must be true or false; this is always text"),
        ("{id: a, gate: '${{ inputs.n }}'}", "a condition must be true or false; this is always a number"),
        (
            "{id: a, local: '${{ inputs.n }}', schema: {type: string}, output: '${{ result }}'}",
            "the `schema` of the step takes text; this is always a number",
        ),
    ],
)
def test_a_setting_that_cannot_take_its_value_is_told(step: str, said_of_it: str) -> None:
    found = examine(HEAD + HAVE + f"steps:\n  - {step}\n")[1]
    assert [problem.message for problem in found] == [said_of_it]


def test_what_is_saved_fits_the_declared_state() -> None:
    head = HEAD + HAVE + "state: {total: {initial: 0, schema: {type: integer}}}\nsteps:\n"
    sound(head + "  - {id: a, local: '${{ inputs.n }}', save: {total: '${{ result }}'}}\n")
    assert said(head + "  - {id: a, local: 1, save: {total: '${{ inputs.t }}'}}\n") == [
        "TRM243 state key `total` takes a number; this is always text"
    ]


def test_a_pause_of_so_many_units_is_read() -> None:
    sound(
        HEAD + HAVE + "steps:\n  - {id: a, delay: '${{ inputs.n }}m'}\n  - {id: b, delay: '${{ inputs.t }} minutes'}\n"
    )


@pytest.mark.parametrize(
    ("verb", "good", "bad"),
    [
        ("shell: {argv: [ls]}", "output.exit_code", "output.exitcode"),
        ("shell: {argv: [ls]}", "output.stdout | lines", "output.lines"),
        ("shell: {argv: [ls], parse: text}", "output | trim", "output.stdout"),
        ("shell: {argv: [ls], parse: lines}", "output[0] | upper", "output.stdout"),
        ("shell: {argv: [ls], parse: json}", "output.anything", "outptu"),
        ("http: {get: 'https://example.com'}", "output.body.anything", "output.json"),
        ("http: {get: 'https://example.com'}", "output.status == 200", "output.status == '200'"),
        ("http: {get: 'https://example.com'}", "output.headers.etag | upper", "output.header"),
        ("ai: {model: 'demo:echo', prompt: x}", "output | upper", "output.text"),
        ("gate: '${{ true == true }}'", "output.decision == 'approved'", "output.decision == 'accepted'"),
        ("delay: 1s", "output.woke_at > 3", "output.until"),
        ("local: {value: {a: 1, b: '${{ run.id }}'}}", "output.b | upper", "output.c"),
        ("local: '${{ 1 + 1 }}'", "output + 1", "output | upper"),
        ("foreach: {items: [1], do: [{id: x, local: '${{ item }}'}]}", "output[0].x + 1", "output[0].y"),
        ("foreach: {items: [1], do: [{id: x, local: 1}]}", "output | map(attribute='x') | sum", "output.x"),
        ("parallel: {items: [1], on_error: collect, do: [{id: x, local: 1}]}", "output[0].error.type", "output[0].err"),
        ("parallel: {branches: {p: [{id: x, local: a}]}}", "output.p.x | upper", "output.x"),
        (
            "branch: {if: '${{ run.attempt == 1 }}', then: [{id: x, local: 1}], else: [{id: y, local: 2}]}",
            "output.y",
            "output.z",
        ),
    ],
)
def test_the_default_output_of_a_verb_is_known(verb: str, good: str, bad: str) -> None:
    text = HEAD + f"steps:\n  - {{id: a, {verb}}}\n  - id: b\n    local: >-\n      ${{{{ steps.a.%s }}}}\n"
    sound(text % good)
    assert len(codes(text % bad)) == 1


@pytest.mark.parametrize(
    ("verb", "good", "bad"),
    [
        ("shell: {argv: [ls], parse: json}", "result.value.x", "result.values"),
        ("shell: {argv: [ls]}", "result.truncated", "result.code"),
        ("http: {get: 'https://example.com'}", "result.body", "result.data"),
        ("ai: {model: 'demo:echo', prompt: x}", "result.usage.input_tokens", "result.value"),
        ("foreach: {items: [1], do: [{id: x, local: 1}]}", "result.failed == 0", "result.errors"),
    ],
)
def test_the_record_of_a_verb_is_known_in_its_own_output(verb: str, good: str, bad: str) -> None:
    text = HEAD + f"steps:\n  - id: a\n    {verb}\n    output: >-\n      ${{{{ %s }}}}\n"
    sound(text % good)
    assert codes(text % bad) == ["TRM209"]


def test_a_reshaped_output_is_known_field_by_field() -> None:
    text = HEAD + (
        "steps:\n  - {id: a, http: {get: 'https://example.com'}, output: {code: '${{ result.status }}', items: [1]}}\n"
        "  - {id: b, local: '${{ steps.a.output.%s }}'}\n"
    )
    sound(text % "code + 1")
    assert codes(text % "status") == ["TRM209"]
    assert codes(text % "code | upper") == ["TRM241"]


def test_an_item_is_what_its_list_holds() -> None:
    text = (
        HEAD
        + HAVE
        + "steps:\n  - id: a\n    foreach:\n      items: ${{ inputs.r }}\n      as: pr\n      key: ${{ pr.%s }}\n"
        + "      do: [{id: b, local: '${{ pr.%s }}'}]\n"
    )
    sound(text % ("id", "risk"))
    assert codes(text % ("id", "rsik")) == ["TRM209"]
    assert codes(text % ("nr", "risk")) == ["TRM209"]


def test_a_mistake_that_follows_from_another_is_not_told() -> None:
    assert codes(using("inputs.nn | length > 'x'")) == ["TRM208"]
    assert codes(using("(inputs.t | upcase) + 1")) == ["TRM206"]
    assert codes(using("(inputs.n | upper) + 1")) == ["TRM241"]


def test_names_that_a_template_binds_hide_what_is_known() -> None:
    sound(
        HEAD + HAVE + "steps:\n  - id: a\n    ai:\n      model: demo:echo\n"
        "      prompt: '{% for inputs in [[1]] %}${{ inputs | first }}{% endfor %}'\n"
    )


def test_a_status_may_be_any_but_is_one_of_the_known() -> None:
    head = HEAD + HAVE + "steps:\n  - {id: a, when: '${{ inputs.b }}', local: 1}\n"
    sound(head + "  - {id: b, when: '${{ steps.a.status == \"skipped\" }}', local: 1}\n")
    sound(head + "  - {id: b, branch: {select: '${{ steps.a.status }}', cases: {succeeded: [], skipped: []}}}\n")
    found = examine(head + "  - {id: b, when: '${{ steps.a.status == \"success\" }}', local: 1}\n")[1]
    assert [problem.code for problem in found] == ["TRM242"]
    assert "succeeded" in (found[0].hint or "")


def called(folder: Path, step: str, more: str = "") -> list[str]:
    (folder / "child.yaml").write_text(
        HEAD + "inputs: {n: {type: integer}, note: {type: string, default: x}}\nsteps:\n"
        "  - {id: a, http: {get: 'https://a.io/${{ inputs.n }}'}}\n  - {id: b, local: '${{ inputs.note }}'}\n"
        "outputs: {status: '${{ steps.a.output.status }}', body: '${{ steps.a.output.body }}'}\n"
    )
    file = folder / "parent.yaml"
    file.write_text(HEAD + HAVE + step + more)
    return [f"{problem.code} {problem.message}" for problem in workflow.check_file(str(file))[1]]


def test_what_a_called_workflow_gives_and_takes_is_known(tmp_path: Path) -> None:
    call = "steps:\n  - {id: c, call: {workflow: ./child.yaml, with: {n: '${{ inputs.%s }}'}}}\n"
    read = "  - {id: d, local: '${{ steps.c.output.%s }}'}\n"
    assert called(tmp_path, call % "n", read % "status + 1") == []
    assert called(tmp_path, call % "t", read % "body.anything") == []
    assert called(tmp_path, call % "n", read % "status | upper") == ["TRM241 `upper` needs text, not a number"]
    assert called(tmp_path, call % "n", read % "stauts") == ["TRM209 the output of step `c` declares no `stauts`"]
    assert called(tmp_path, call % "l") == ["TRM316 input `n` of ./child.yaml takes a number; this is always a list"]
    misspelt = "steps:\n  - {id: c, call: {workflow: ./child.yaml, with: {nn: 1, note: x}}}\n"
    assert called(tmp_path, misspelt) == ["TRM316 ./child.yaml has no input `nn`"]


def test_the_permits_of_a_caller_are_asked_for_what_it_calls(tmp_path: Path) -> None:
    call = "steps:\n  - {id: c, call: {workflow: ./child.yaml, with: {n: 1}}}\n"
    assert called(tmp_path, "permits: {http: [a.io]}\n" + call) == []
    assert called(tmp_path, "permits: {http: [b.io]}\n" + call) == ["TRM386 the host a.io is not permitted"]
