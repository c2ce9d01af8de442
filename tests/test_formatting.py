"""The canonical form of a file: same digest, same data, every comment, and stable."""

# ruff: noqa: E501 - texts are shown as they stand in a file

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tramai import document, formatting, plan, workflow
from tramai.errors import InvalidDefinition
from tramai.formatting import Unwritable, _same

ROOT = Path(__file__).resolve().parent.parent
FILES = [
    *sorted(path for path in (ROOT / "workflows").rglob("*.[yt][ao]ml") if ".tramai-test." not in path.name),
    ROOT / "tests" / "data" / "everything.yaml",
]
EXPLAIN = ROOT / "tramai" / "explain"
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(EXPLAIN.glob("*.md"))]


def shown() -> list[Any]:
    """Every page with the whole workflows that it shows. The pages of codes show one rule each; they are slow."""
    found = []
    for path in DOCS:
        blocks = re.findall(r"^```(yaml|toml)\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)
        if whole := [(body, form) for form, body in blocks if re.search(r"^tramai *[:=]", body, re.M)]:
            found.append(pytest.param(whole, id=path.name, marks=pytest.mark.slow if path.parent == EXPLAIN else ()))
    return found


@functools.cache
def is_sound(body: str, form: str) -> bool:
    """Whether a workflow that is shown has no error."""
    return workflow.examine(document.parse(body, file=f"x.{form}"))[0] is not None


def digest(text: str, form: str) -> str:
    loaded, problems = workflow.examine(document.parse(text, file=f"x.{form}"))
    assert loaded is not None, (problems, text)
    return plan.of(loaded).digest


def data(text: str, form: str) -> object:
    root = document.parse(text, file=f"x.{form}").root
    assert root is not None
    return _same.plain(root)


def formatted(text: str, form: str = "yaml") -> str:
    result = formatting.format_document(document.parse(text, file=f"x.{form}")).text
    assert digest(result, form) == digest(text, form)
    assert data(result, form) == data(text, form)
    assert formatting.format_document(document.parse(result, file=f"x.{form}")).text == result
    return result


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_has_a_canonical_form(path: Path) -> None:
    source = document.read(str(path))
    result = formatting.format_document(source).text
    again = document.parse(result, file=str(path))
    assert formatting.format_document(again).text == result
    assert (
        sorted(re.findall(r"(?:^|\s)# .*", source.text)) == sorted(re.findall(r"(?:^|\s)# .*", result)) or "#" in result
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_examples_are_in_canonical_form(path: Path) -> None:
    assert formatting.format_document(document.read(str(path))).text == path.read_text("utf-8"), f"tramai fmt {path}"


@pytest.mark.parametrize("whole", shown())
def test_every_workflow_in_the_docs_has_one(whole: list[tuple[str, str]]) -> None:
    for body, form in whole:
        if "%YAML" not in body and is_sound(body, form):
            formatted(body, form)


def test_most_workflows_in_the_docs_are_sound() -> None:
    quick = [one.values[0] for one in shown() if not one.marks]
    sound = [is_sound(body, form) for whole in quick for body, form in whole]
    assert sum(sound) > 0.9 * len(sound) > 60


def steps(body: str) -> str:
    return f"tramai: 1\nname: x\nsteps:\n{body}"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param(
            "steps: [{local: 1, id: a}]\nname: x\nx-note: 1\ntramai: 1\n",
            "tramai: 1\nname: x\nsteps: [{id: a, local: 1}]\nx-note: 1\n",
            id="top level and step in order, notes of one's own last",
        ),
        pytest.param(
            "# modeline\n# about\n\nname: x # n\n# before tramai\ntramai: 1\nsteps:\n- local: 1 # v\n  # before id\n  id: a\n",
            "# modeline\n# about\n\n# before tramai\ntramai: 1\nname: x # n\nsteps:\n  # before id\n  - id: a\n"
            "    local: 1 # v\n",
            id="comments move with what stands below or beside them",
        ),
        pytest.param(
            steps("    - id: a\n      # first\n      timeout: 1s\n      # tail of a\n      local: 1\n    # end of the list\n# end\n"),
            steps("  - id: a\n    # tail of a\n    local: 1\n    # first\n    timeout: 1s\n  # end of the list\n# end\n"),
            id="comments at the ends of blocks stay in them",
        ),
        pytest.param(
            steps("  - id: a\n    shell:\n      run: x\n      # parse: text\n    # timeout: 5s\n  # - id: b\n# outputs:\n"),
            steps("  - id: a\n    shell:\n      run: x\n      # parse: text\n    # timeout: 5s\n  # - id: b\n# outputs:\n"),
            id="what is commented out stays where it is",
        ),
        pytest.param(
            "tramai: 1\n\n\n\nname: x\n\nsteps:\n\n  - id: a\n\n    local: 1\n\n\n",
            "tramai: 1\n\nname: x\n\nsteps:\n  - id: a\n\n    local: 1\n",
            id="one blank line is enough",
        ),
        pytest.param(
            steps("  -   id: a\n      local: |2\n          two more\n        none\n        \n"),
            steps("  - id: a\n    local: |2\n        two more\n      none\n"),
            id="a block that begins with blanks keeps them",
        ),
        pytest.param(
            steps("   - local: |+\n           kept\n\n            more\n\n\n     id: a\n     timeout: 5s\n"),
            steps("  - id: a\n    local: |+\n      kept\n\n       more\n\n\n    timeout: 5s\n"),
            id="a block that keeps its end keeps it",
        ),
        pytest.param(
            steps("  - id: a\n    timeout: 5s\n    local: |+\n      kept\n\n\n").replace("tramai: 1\n", "") + "tramai: 1\n",
            "tramai: 1\n" + steps("  - id: a\n    local: |+\n      kept\n\n\n    timeout: 5s\n").replace("tramai: 1\n", ""),
            id="so does the one at the end of the file",
        ),
        pytest.param(
            steps("  - id: a\n    local: >-   # why\n          folded\n            deeper\n\n          end\n"),
            steps("  - id: a\n    local: >- # why\n      folded\n        deeper\n\n      end\n"),
            id="folded and stripped",
        ),
        pytest.param(
            steps("  - id: a\n    local: \"one\n       two\n\n       three\\\n          \\ four\"\n"),
            steps("  - id: a\n    local: \"one\n      two\n\n      three\\\n      \\ four\"\n"),
            id="quoted text of several lines",
        ),
        pytest.param(
            steps("  - id: a\n    retry: &r {delay: 1s, max_attempts: 2}\n    local: 1\n  - id: b\n    retry: *r\n    local: 2\n"),
            steps("  - id: a\n    local: 1\n    retry: &r {max_attempts: 2, delay: 1s}\n  - id: b\n    local: 2\n    retry: *r\n"),
            id="anchors and aliases",
        ),
        pytest.param(
            "tramai: 1\nname: x\nx-shared: &e\n    A: b\nsteps:\n  - id: a\n    shell: {run: x, env: *e}\n",
            "tramai: 1\nname: x\nx-shared: &e\n  A: b\nsteps:\n  - id: a\n    shell: {run: x, env: *e}\n",
            id="an anchor that would come after its alias keeps the order",
        ),
        pytest.param(
            steps("  - 'id': \"a\"\n    local: {value: [\"yes\", 'no', \"1.10\", \"010\", \"\", \" x\", 'a: b', \"x #y\", 'ok', \"a,b\"]}\n"),
            steps("  - id: a\n    local: {value: [\"yes\", 'no', \"1.10\", \"010\", \"\", \" x\", 'a: b', \"x #y\", ok, \"a,b\"]}\n"),
            id="quotes go only where no reader could doubt",
        ),
        pytest.param(
            steps("  - id: a\n    local: \"${{ 1 }}\"\n    when: '${{ true }}'\n  - {id: b, local: \"${{ 1 }}\"}\n"),
            steps("  - id: a\n    when: ${{ true }}\n    local: ${{ 1 }}\n  - {id: b, local: \"${{ 1 }}\"}\n"),
            id="expressions need no quotes but in braces",
        ),
        pytest.param(
            steps("  - id: a\n    local:\n      value: [1,   # one\n        {b: c,\n           d: 'e'}]   # end\n"),
            steps("  - id: a\n    local:\n      value: [1,   # one\n        {b: c,\n        d: 'e'}] # end\n"),
            id="what stands in brackets over several lines is only indented",
        ),
        pytest.param(
            steps("  - id: a\n    local: {value: {z: 1,a: 2}}\n    schema: {type: object, properties: {z: {}, a: {}}}\n"),
            steps("  - id: a\n    local: {value: {z: 1, a: 2}}\n    schema: {type: object, properties: {z: {}, a: {}}}\n"),
            id="data keeps its order",
        ),
        pytest.param(
            steps("  - id: a\n    x-n:\n    - - 1\n      - 2\n    - - - x\n    -\n      y: 1\n    - {}\n    local: 1\n"),
            steps("  - id: a\n    local: 1\n    x-n:\n      - - 1\n        - 2\n      - - - x\n      - y: 1\n      - {}\n"),
            id="lists in lists",
        ),
        pytest.param(
            "---\n" + steps("  - {id: a, local: Grüße, description: '日本語: 🙂'}\n"),
            "---\n" + steps("  - {id: a, description: '日本語: 🙂', local: Grüße}\n"),
            id="not only ASCII",
        ),
        pytest.param(
            steps("  - id: a\n    local: " + "long " * 60 + "line\n"),
            steps("  - id: a\n    local: " + "long " * 60 + "line\n"),
            id="long lines are nobody's business",
        ),
        pytest.param(
            steps("  - # beside the dash\n    id: a\n    local: # beside the key\n      ${{ 1 }} # beside the value\n"),
            steps("  # beside the dash\n  - id: a\n    # beside the key\n    local: ${{ 1 }} # beside the value\n"),
            id="comments beside what has no line of its own",
        ),
        pytest.param('{"tramai": 1,  "name": "x", "steps": [{"id": "a", "local": 1}]}  \n\n',
                     '{"tramai": 1,  "name": "x", "steps": [{"id": "a", "local": 1}]}\n', id="JSON stays JSON"),
    ],
)  # fmt: skip
def test_yaml_in_canonical_form(text: str, result: str) -> None:
    if "&e" in text:
        assert formatting.format_document(document.parse(text, file="x.yaml")).note
    assert formatted(text) == result
    crlf = formatting.format_document(document.parse(text.replace("\n", "\r\n"), file="x.yaml")).text
    assert crlf == result.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param(
            '# head\nname   = "x"  # n\n# before tramai\n\ntramai=1\n\n\n\n[inputs.a]\ndefault = "x"\ntype="string"\n# tail\n'
            '# about one\n[[steps]]\nlocal = 1\nid = "one"   \n',
            '# head\n# before tramai\n\ntramai = 1\nname = "x" # n\n\n# tail\n# about one\n[inputs.a]\n',
            id="order, blanks and comments",
        ),
        pytest.param(
            'tramai = 1\nname = "x"\n[[steps]]\nid = "one"\nlocal = """\n  a = [\n\n\n  # no comment\n"""\n# end\n',
            'tramai = 1\nname = "x"\n\n[[steps]]\nid = "one"\nlocal = """\n  a = [\n\n\n  # no comment\n"""\n# end\n',
            id="text of several lines is left alone",
        ),
        pytest.param(
            'tramai = 1\nname = "x"\n[[steps]]\nid = "one"\nretry.max_attempts = 2\nlocal.value = [\n  1, # one\n\n  2 ]\n',
            'tramai = 1\nname = "x"\n\n[[steps]]\nid = "one"\nlocal.value = [\n  1, # one\n\n  2 ]\nretry.max_attempts = 2\n',
            id="dotted keys, and lists over several lines",
        ),
    ],
)
def test_toml_in_canonical_form(text: str, result: str) -> None:
    made = formatted(text, "toml")
    if "about one" in text:
        assert made.startswith('# head\n# before tramai\n\ntramai = 1\nname = "x" # n\n\n[inputs.a]\ntype = "string"\n')
        assert made.endswith('# tail\n# about one\n[[steps]]\nid = "one"\nlocal = 1\n')
        return
    assert made.replace("\n\n\n  2", "\n\n  2") == result


def test_a_file_with_errors_is_refused() -> None:
    with pytest.raises(InvalidDefinition):
        formatting.format_document(document.parse("tramai: 1\n", file="x.yaml"))


@pytest.mark.parametrize(
    "text",
    ["%YAML 1.2\n---\n" + steps("  - {id: a, local: 1}\n"), steps("  - {id: a, local: 1}\n...\n")],
)
def test_what_cannot_be_written_anew_is_left_alone(text: str) -> None:
    with pytest.raises(Unwritable):
        formatting.format_document(document.parse(text, file="x.yaml"))


LINES = st.lists(
    st.sampled_from(["    local: 1", "    timeout: 5s # t", "    # own", "", "    retry: {delay: 1s, max_attempts: 2}",
                     "    x-a: |+\n        k\n\n", "      # deeper", "  # less", "    description: >-\n      a\n        b",
                     '    x-b:\n    - "q"\n    # in\n    - {c: d}', "    when: '${{ true }}'"]),
    unique=True, max_size=8,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(LINES, min_size=1, max_size=3))
def test_whatever_the_order_nothing_is_lost(blocks: list[list[str]]) -> None:
    text = "# head\nname: x\nsteps:\n"
    for number, lines in enumerate(blocks):
        lines = lines if "    local: 1" in lines else [*lines, "    local: 1"]
        text += f"  - id: s{number} # {number}\n" + "".join(f"{line}\n" for line in lines)
    text += "tramai: 1\n# end\n"
    result = formatted(text)
    assert result.count("#") == text.count("#")
    assert formatted(text.replace("\n", "\r\n")).replace("\r\n", "\n") == result


# The other format.


def converted(text: str, form: str) -> str:
    to = "yaml" if form == "toml" else "toml"
    made = formatting.convert_document(document.parse(text, file=f"x.{form}"), to)
    assert made.digest == digest(text, form) == digest(made.text, to)
    assert made.lost == ()
    return made.text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_goes_there_and_back(path: Path) -> None:
    text, form = path.read_text(encoding="utf-8"), "toml" if path.suffix == ".toml" else "yaml"
    try:
        there = converted_in_place(path, text, form)
    except Unwritable as error:
        if re.search(r"\bnull\b", text) and "no null" in str(error):
            return
        raise
    if re.search(r": [|]$", text, re.M):
        assert "'''\n" in there, "text of several lines stays readable"


def converted_in_place(path: Path, text: str, form: str) -> str:
    """There and back beside the file, so that what it names by path is found."""
    to = "yaml" if form == "toml" else "toml"
    made = formatting.convert_document(document.parse(text, file=str(path), format=form), to)
    back = formatting.convert_document(document.parse(made.text, file=str(path), format=to), form)
    assert made.digest == back.digest
    assert (made.lost, back.lost) == ((), ())
    return made.text


@pytest.mark.parametrize("whole", shown())
def test_every_workflow_in_the_docs_goes_there_and_back(whole: list[tuple[str, str]]) -> None:
    for body, form in whole:
        if re.search(r"\bnull\b", body) or not is_sound(body, form):
            continue
        there = converted(body, form)
        assert digest(converted(there, "yaml" if form == "toml" else "toml"), form) == digest(body, form)


TEXTS = st.text(st.sampled_from("ab'\"\\ \n\t#:-{}[]$%&*!|>,é\r\x01\x85\u2028🙂0.1~"), max_size=30)
PLAIN = st.one_of(
    TEXTS, st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


@settings(deadline=None, max_examples=60)
@given(VALUES, TEXTS)
def test_any_data_goes_there_and_back(value: Any, note: str) -> None:
    import json

    from tramai.formatting import _toml_write, _yaml_write

    whole = {"tramai": 1, "name": "x", "steps": [{"id": "a", "local": {"value": value}, "x-n": note}], "x-v": value}
    if "${{" in json.dumps(value) or "${{" in note:
        return
    for write, form in ((_yaml_write.document, "yaml"), (_toml_write.document, "toml")):
        text = write(whole, {})
        loaded, problems = workflow.examine(document.parse(text, file=f"x.{form}"))
        assert loaded is not None, (problems, text)
        from tramai.formatting import _convert

        assert json.dumps(_convert.data(document.parse(text, file=f"x.{form}")), sort_keys=True) == json.dumps(
            whole, sort_keys=True
        )


def test_comments_go_where_they_have_a_place() -> None:
    text = (
        "# yaml-language-server: $schema=s.json\n# head\n\ntramai: 1\nname: x # n\n\n# steps\nsteps: # list\n  # one\n"
        "  - id: one # o\n    local:\n      value: # v\n        - 1 # first\n        # second\n        - 2\n        # end\n"
        "    # tail\n# over\n"
    )
    made = converted(text, "yaml")
    assert made == (
        '#:schema s.json\n# head\ntramai = 1\nname = "x" # n\n\n# steps\n# one\n[[steps]] # list\nid = "one" # o\n\n'
        "[steps.local]\nvalue = [\n    1, # first\n    # second\n    2,\n    # end\n] # v\n# tail\n# over\n"
    )
    back = converted(made, "toml")
    assert back.startswith("# yaml-language-server: $schema=s.json\n# head\ntramai: 1\nname: x # n\n")


def test_a_null_has_no_place_in_toml() -> None:
    with pytest.raises(Unwritable) as caught:
        formatting.convert_document(
            document.parse(steps("  - {id: a, local: {value: [null]}}\n"), file="x.yaml"), "toml"
        )
    assert caught.value.position is not None
    assert caught.value.position.line == 4


def test_what_only_the_present_rules_of_yaml_allow_is_formatted_too() -> None:
    text = (
        "tramai: 1\nname: x\ninputs: {q: {type: string, description: d, default: What for?}}\n"
        "steps:\n  - id: a\n    http: {get: https://example.com/z/x?y=1}\n"
    )
    once = formatted(text)
    assert formatted(once) == once
    assert digest(once, "yaml") == digest(text, "yaml")
