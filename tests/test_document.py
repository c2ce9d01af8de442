import io
import sys
import time
from types import SimpleNamespace

import pytest

from tramai import _yaml_events
from tramai.document import Document, excerpt, gutter, parse, read
from tramai.errors import ConfigurationError, Position
from tramai.schema import resolve


def yaml(text):
    return parse(text, file="w.yaml")


def toml(text):
    return parse(text, file="w.toml")


def data(document):
    return resolve(document, {}).data


def found(document):
    return [(problem.code, problem.position.line, problem.position.column) for problem in document.problems]


def only(document):
    (problem,) = document.problems
    return problem


def span(position):
    return position.line, position.column, position.end_line, position.end_column


def marked(document, position):
    """The source that a position covers."""
    lines = document.text.replace("\r\n", "\n").split("\n")[position.line - 1 : position.end_line]
    lines[-1] = lines[-1][: position.end_column - 1]
    lines[0] = lines[0][position.column - 1 :]
    return "\n".join(lines)


@pytest.fixture(params=["libyaml", "pure"])
def parser(request, monkeypatch):
    monkeypatch.setattr(_yaml_events, "has_libyaml", lambda: request.param == "libyaml")


# Refusals


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "words"),
    [
        ("", "TRM118", 1, 1, "empty"),
        ("# only comments\n", "TRM118", 1, 1, "empty"),
        ("---\n", "TRM118", 1, 1, "empty"),
        ("null\n", "TRM118", 1, 1, "empty"),
        ("- a\n- b\n", "TRM118", 1, 1, "list"),
        ("just text\n", "TRM118", 1, 1, "text"),
        ("a: 1\nb: 2\na: 3\n", "TRM103", 3, 1, "duplicate key `a`"),
        ("a: {x: 1, x: 2}\n", "TRM103", 1, 11, "duplicate key `x`"),
        ('a: 1\n"a": 2\n', "TRM103", 2, 1, "duplicate key `a`"),
        ("a: 1\n---\nb: 2\n", "TRM111", 2, 1, "second document"),
        ("a: 1\n...\n---\nb: 2\n", "TRM111", 3, 1, "second document"),
        ("a: !foo 1\n", "TRM112", 1, 4, "`!foo`"),
        ("a: !!python/object/apply:os.system [id]\n", "TRM112", 1, 4, "python/object"),
        ("a: !!int 3\n", "TRM112", 1, 4, "`!!int`"),
        ("a: !!map [x]\n", "TRM112", 1, 4, "`!!map`"),
        ("base: &b {x: 1}\nc:\n  <<: *b\n", "TRM113", 3, 3, "merge"),
        ("a: &a [*a]\n", "TRM114", 1, 8, "inside what it names"),
        ("a: &a {b: {c: *a}}\n", "TRM114", 1, 15, "inside what it names"),
        ("a: *nobody\n", "TRM114", 1, 4, "no anchor"),
        ("a: " + "[" * 70 + "]" * 70 + "\n", "TRM115", 1, 67, "64 levels"),
        ("a: " + "[" * 5000, "TRM115", 1, 67, "64 levels"),
        ("null: 1\n", "TRM117", 1, 1, "null"),
        ("~: 1\n", "TRM117", 1, 1, "null"),
        ("? \n: 1\n", "TRM117", 1, 2, "missing"),
        ("[a, b]: 1\n", "TRM117", 1, 1, "list"),
        ("{a: 1}: 1\n", "TRM117", 1, 1, "mapping"),
        ("a: {{ x }}\n", "TRM120", 1, 4, "expression"),
        ("a: {b: ${{ x }}}\n", "TRM120", 1, 8, "expression"),
        ("a: [1, ${{ x.y }}]\n", "TRM120", 1, 8, "expression"),
        ("a:\n\tb: 1\n", "TRM101", 2, 1, "tab"),
        ("a:\n  - b: 1\n  \tc: 2\n", "TRM101", 3, 3, "tab"),
        ("a: 1\n   b: 2\n", "TRM101", 2, 5, "`:`"),
        ('a: "x\nb: 1\n', "TRM101", 1, 4, "never closed"),
        ('a: "\\q"\n', "TRM101", 1, 5, "escape"),
        ("a: @x\n", "TRM101", 1, 4, "cannot start"),
        ("a: [1, 2\nb: 3\n", "TRM101", 2, 2, "bracket"),
        ("%YAML 1.1\n---\na: 1\n", "TRM101", 1, 1, "YAML 1.2"),
        ("a: 1\n---\n\ufeffb: 1\n", "TRM110", 3, 1, "U+FEFF"),
        ("a: x\0y\n", "TRM110", 1, 5, "U+0000"),
        ("a: \ud83d\n", "TRM110", 1, 4, "U+D83D"),
        (b"a: 1\nb: \xff\n", "TRM110", 2, 4, "0xFF"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "TRM110", 1, 1, "U+007F"),
    ],
)
def test_a_yaml_text_that_the_language_refuses_says_why_and_where(text, code, line, column, words):
    problem = only(yaml(text))
    assert (problem.code, problem.position.line, problem.position.column) == (code, line, column)
    assert words in problem.message


def test_a_duplicate_key_names_both_places_and_keeps_the_first_value():
    document = yaml("steps:\n  - id: a\n    shell: x\n    shell: y\n")
    problem = only(document)
    assert problem.path == "/steps/0/shell"
    assert problem.related[0].position.line == 3
    assert data(document) == {"steps": [{"id": "a", "shell": "x"}]}


def test_a_second_document_names_the_first():
    problem = only(yaml("---\na: 1\n---\nb: 2\n"))
    assert problem.related[0].position.line == 1


def test_an_unquoted_expression_is_shown_with_its_quotes():
    assert only(yaml("run: {{ params.x }}\n")).hint == 'quote the expression: "${{ params.x }}"'
    assert only(yaml("env: {A: ${{ inputs.a }}}\n")).hint == 'quote the expression: "${{ inputs.a }}"'


def test_an_unquoted_expression_in_a_list_has_its_pointer():
    document = yaml("steps:\n  - shell:\n      argv: [a, {{ x }}]\n")
    assert only(document).path == "/steps/0/shell/argv/1"


def test_several_refusals_are_reported_at_once():
    document = yaml("a: 1\na: 2\nb: !x 1\n~: 2\n? [c]\n: d\n")
    assert found(document) == [("TRM103", 2, 1), ("TRM112", 3, 4), ("TRM117", 4, 1), ("TRM117", 5, 3)]


def test_a_file_of_more_than_1_mib_is_refused_before_it_is_parsed():
    assert only(yaml("a: " + "x" * (1024 * 1024))).code == "TRM116"
    assert not yaml("a: " + "x" * (1024 * 1024 - 4)).problems


def test_aliases_stand_for_what_they_name_and_are_counted():
    assert data(yaml("a: &a {x: [1]}\nb: *a\nc: [*a, *a]\n"))["c"] == [{"x": [1]}, {"x": [1]}]
    many = "a: &a 1\nb: [" + "*a, " * 1000 + "]\n"
    assert not yaml(many).problems
    assert only(yaml(many.replace("b: [", "b: [*a, "))).code == "TRM114"


def test_an_alias_bomb_is_refused_by_what_it_would_expand_to():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    started = time.perf_counter()
    assert only(yaml("\n".join(levels))).position.line == 5
    assert time.perf_counter() - started < 1
    wide = "a: &a '" + "x" * 100_000 + "'\nb: [" + "*a, " * 900 + "]\n"
    assert "1 MiB" in only(yaml(wide)).message


# What is accepted


def test_keys_are_the_text_as_written(parser):
    text = "on: 1\nno: 2\n200: 3\ntrue: 4\n010: 5\n1.10: 6\n2024-01-15: 7\n"
    assert list(data(yaml(text))) == ["on", "no", "200", "true", "010", "1.10", "2024-01-15"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_and_a_byte_order_mark_change_nothing(ending, mark, parser):
    text = "a: |\n  one\n\n  two\nb: 'x\n\n  y'\nc: >\n  p\n  q\n"
    document = yaml((mark + text.replace("\n", ending)).encode())
    assert not document.problems
    assert data(document) == {"a": "one\n\ntwo\n", "b": "x\ny", "c": "p q\n"}
    assert document.position(("c",), key=True).line == 8


def test_line_separators_of_unicode_are_ordinary_characters(parser):
    text = "a: 'x\x85y\u2028z\u2029'\nb: |\n  p\u2028q\x85r\nc\u2028d: 1\n"
    document = yaml(text)
    assert data(document) == {"a": "x\x85y\u2028z\u2029", "b": "p\u2028q\x85r\n", "c\u2028d": 1}
    assert span(document.position(("b",), key=True))[:2] == (2, 1)


def test_flow_mappings_take_urls_and_times_as_yaml_1_2_does(parser):
    document = yaml('a: {url: https://example.com/x, at: 22:30:00, "b":1}\n')
    assert data(document) == {"a": {"url": "https://example.com/x", "at": "22:30:00", "b": 1}}


def test_a_scalar_marked_as_text_is_text():
    assert data(yaml("a: !!str 010\nb: !!str true\n")) == {"a": "010", "b": "true"}


def test_a_surrogate_escape_is_refused_by_both_parsers(parser):
    document = yaml('a: "\\ud83d"\n')
    assert document.problems
    assert document.problems[0].code in ("TRM101", "TRM110")


def test_both_parsers_read_the_same_and_find_the_same_places(monkeypatch):
    text = "a: &x {b: [1, 'c', \"d\\n\"]}\nh: *x\ni: |+\n  j\n\nk: l\n m\nn: >-\n  o\n  p\n"
    first = yaml(text)
    monkeypatch.setattr(_yaml_events, "has_libyaml", lambda: False)
    second = yaml(text)
    assert data(first) == data(second)
    for pointer in (("a",), ("a", "b"), ("a", "b", 2), ("h", "b", 1), ("i",), ("k",), ("n",)):
        assert first.position(pointer) == second.position(pointer)
        assert first.position(pointer, key=True) == second.position(pointer, key=True)


# Places


def test_every_key_and_value_has_its_place():
    document = yaml("é: 1\nb:\n  - c: [x, 'yz']\n    d: {e: 10}\n")
    assert span(document.position(("é",), key=True)) == (1, 1, 1, 2)
    assert span(document.position(("é",))) == (1, 4, 1, 5)
    assert span(document.position(("b", 0, "c", 1))) == (3, 12, 3, 16)
    assert span(document.position(("b", 0, "d", "e"))) == (4, 12, 4, 14)
    assert span(document.position(("b", 0, "d"))) == (4, 8, 4, 15)


def test_an_unknown_pointer_has_the_place_of_its_nearest_ancestor():
    document = yaml("a:\n  b: 1\n")
    assert document.position(("a", "c", "d")) == document.position(("a",), key=True)
    assert span(document.position(("z",))) == span(document.position(()))


def test_a_block_ends_with_its_last_value_not_with_the_comments_after_it():
    document = yaml("a:\n  b: 1\n\n# far below\n\nc: |\n  x\n\n\nd: 1\n")
    assert span(document.position(("a",))) == (2, 3, 2, 7)
    assert span(document.position(("c",))) == (6, 4, 7, 4)


def test_the_place_of_something_missing_is_the_first_key():
    document = yaml("steps:\n  - id: a\n    x: 1\n  - {}\n")
    assert span(document.first_key(("steps", 0))) == (2, 5, 2, 7)
    assert span(document.first_key(("steps", 1))) == (4, 5, 4, 7)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("a: x ${{ y }} z\n", "${{ y }}"),
        ("a: x\n  ${{ y }}\n  z\n", "${{ y }}"),
        ("a: 'it''s ${{ y }}'\n", "${{ y }}"),
        ('a: "\\t\\u00e9\\x41 ${{ y }} \\n"\n', "${{ y }}"),
        ('a: "x\\\n   y ${{ y }}"\n', "${{ y }}"),
        ("a: |\n  one\n\n   two ${{ y }}\n  three\n", "${{ y }}"),
        ("a: |2-\n   one\n  ${{ y }}\n", "${{ y }}"),
        ("a: >\n  one\n  two\n\n  three ${{ y }}\n    four\n  five\n", "${{ y }}"),
        ("a: >-\n\n  one\n    two ${{ y }}\n", "${{ y }}"),
        ("a: &x !!str ${{ y }}\n", "${{ y }}"),
        ("a: |\r\n  one\r\n  ${{ y }}\r\n", "${{ y }}"),
    ],
)
def test_characters_inside_a_yaml_scalar_have_their_own_places(source, wanted):
    document = yaml(source)
    assert not document.problems
    text = data(document)["a"]
    start = text.index("${{")
    position = document.inside(("a",), start, start + len(wanted))
    assert marked(document, position) == wanted


@pytest.mark.parametrize(
    "source",
    [
        'a = "x ${{ y }} z"\n',
        'a = "\\t\\u00e9 \\"${{ y }}"\n',
        "a = 'x ${{ y }}'\n",
        'a = """\nx\ny ${{ y }}\n"""\n',
        'a = """\\\n   x \\\n   ${{ y }}"""\n',
        "a = '''\nx\n  ${{ y }}'''\n",
        'a = """\r\nx\r\n${{ y }}"""\r\n',
    ],
)
def test_characters_inside_a_toml_string_have_their_own_places(source):
    document = toml(source)
    text = data(document)["a"]
    start = text.index("${{")
    assert marked(document, document.inside(("a",), start, start + 8)) == "${{ y }}"


def test_an_escape_inside_a_range_is_covered_whole():
    document = yaml('a: "x\\u00e9y"\n')
    assert marked(document, document.inside(("a",), 1, 2)) == "\\u00e9"
    assert marked(document, document.inside(("a",), 0, 3)) == "x\\u00e9y"


def test_a_range_in_something_that_is_no_text_is_the_whole_of_it():
    document = yaml("a: [1]\n")
    assert document.inside(("a",), 0, 1) == document.position(("a",))


# TOML


def test_toml_values_and_places():
    document = toml(
        "name = 'x'\n\n[limits]\ntimeout = '5m'\n\n[[steps]]\nid = 'a'\nshell.run = 'make'\n"
        "[[steps]]\nid = 'b'\nlist = [1, {x = 2.5, y = [true]}]\n[steps.http]\nget = 'u'\n"
    )
    assert data(document) == {
        "name": "x",
        "limits": {"timeout": "5m"},
        "steps": [
            {"id": "a", "shell": {"run": "make"}},
            {"id": "b", "list": [1, {"x": 2.5, "y": [True]}], "http": {"get": "u"}},
        ],
    }
    assert marked(document, document.position(("steps", 1, "list", 1, "y", 0))) == "true"
    assert marked(document, document.position(("steps", 0, "shell", "run"), key=True)) == "run"
    assert marked(document, document.position(("steps", 1, "http"), key=True)) == "http"
    assert marked(document, document.position(("limits", "timeout"))) == "'5m'"


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", "TRM118", 1, 1),
        ("# nothing\n", "TRM118", 1, 1),
        ("a = yes\n", "TRM102", 1, 5),
        ("a = \n", "TRM102", 1, 5),
        ("a = 'x\n", "TRM102", 1, 5),
        ('a = "x\n', "TRM102", 1, 7),
        ("a = 1\nb = '''x\ny", "TRM102", 2, 5),
        ("a 1\n", "TRM102", 1, 3),
        ("a = 1\nb = 1\na = 2\n", "TRM103", 3, 1),
        ("[a]\nx = 1\n[b]\n[a]\n", "TRM103", 4, 2),
        ("[[a]]\n[a]\n", "TRM103", 2, 2),
        ("a.b = 1\n[a]\n", "TRM103", 2, 2),
        ("a = {x = 1, x = 2}\n", "TRM103", 1, 13),
        ("a = " + "[" * 70 + "]" * 70, "TRM115", 1, 70),
        ("a = " + "[" * 5000, "TRM115", 1, 70),
        ("a" + ".a" * 400_000 + " = 1", "TRM115", 1, 129),
        ("a = " + "9" * 5000, "TRM119", 1, 5),
    ],
)
def test_a_toml_text_that_the_language_refuses_says_why_and_where(text, code, line, column):
    problem = only(toml(text))
    assert (problem.code, problem.position.line, problem.position.column) == (code, line, column)


def test_a_toml_table_declared_twice_names_both_places():
    problem = only(toml("[a]\nx = 1\n[b]\ny = 1\n[a]\n"))
    assert problem.related[0].position.line == 1


def test_toml_takes_a_byte_order_mark_and_windows_line_ends():
    document = toml('\ufeffa = """\r\nx\r\ny"""\r\nb = 1\r\n'.encode())
    assert data(document) == {"a": "x\ny", "b": 1}
    assert document.position(("b",)).line == 4


def test_local_dates_and_times_are_text_and_offset_ones_are_refused():
    document = toml("a = 2024-01-15\nb = 22:30:00\nc = 2024-01-15 10:00:00\nd = 2024-01-15T10:00:00Z\n")
    resolved = resolve(document, {})
    assert resolved.data["a"] == "2024-01-15"
    assert resolved.data["b"] == "22:30:00"
    assert resolved.data["c"] == "2024-01-15 10:00:00"
    (problem,) = resolved.problems
    assert (problem.code, problem.hint) == ("TRM119", 'quote it: "2024-01-15T10:00:00Z"')


# Reading files


def test_the_format_follows_from_the_name_or_from_the_text(tmp_path, monkeypatch):
    assert parse("a = 1", file="x.TOML").format == "toml"
    assert parse("a: 1", file="x.yml").format == "yaml"
    assert parse("# c\n\n[[steps]]\nid = 'a'", file="<stdin>").format == "toml"
    assert parse("tramai = 1", file="<stdin>").format == "toml"
    assert parse("tramai: 1\nrun: a = b", file="<stdin>").format == "yaml"
    assert parse("{tramai: 1}", file="<stdin>").format == "yaml"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a: 1")))
    assert data(read("-")) == {"a": 1}


def test_a_file_is_read_and_an_unreadable_one_is_a_configuration_error(tmp_path):
    path = tmp_path / "w.yaml"
    path.write_bytes("a: é\n".encode())
    assert data(read(str(path))) == {"a": "é"}
    with pytest.raises(ConfigurationError, match="no such file"):
        read(str(tmp_path / "missing.yaml"))
    with pytest.raises(ConfigurationError, match="folder"):
        read(str(tmp_path))
    with pytest.raises(ConfigurationError, match="cannot read"):
        read("a\0b")


def test_a_file_that_grows_without_end_is_read_no_further_than_the_limit():
    assert only(read("/dev/zero")).code == "TRM116"


# Excerpts


def test_an_excerpt_shows_the_line_its_neighbour_and_carets():
    document = Document("w.yaml", "a: 1\nb: shel\n", "yaml", None)
    place = Position("w.yaml", 2, 4, 2, 8)
    assert excerpt(document.text, place, note="not known") == (
        "  --> w.yaml:2:4\n   |\n 1 | a: 1\n 2 | b: shel\n   |    ^^^^ not known"
    )


def test_an_excerpt_counts_tabs_and_wide_characters_as_a_terminal_does():
    shown = excerpt("\tk: 日本 x", Position("f", 1, 8, 1, 9)).split("\n")
    assert shown[-2] == " 1 |     k: 日本 x"
    assert shown[-1] == "   | " + " " * 12 + "^"


def test_an_excerpt_shows_nothing_that_moves_a_cursor_or_turns_text_around():
    shown = excerpt("a: \x1b[31m\u202ex", Position("f", 1, 4, 1, 5))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_an_excerpt_of_a_very_long_line_is_cut_around_the_place():
    lines = excerpt("x" * 5000 + "HERE" + "y" * 5000, Position("f", 1, 5001, 1, 5005)).split("\n")
    assert all(len(line) < 140 for line in lines)
    start = lines[-1].index("^")
    assert lines[-2][start : start + 4] == "HERE"


def test_an_excerpt_past_the_end_of_the_text_still_has_its_caret():
    assert excerpt("a", Position("f", 9, 1, 9, 1)).endswith("^")
    assert gutter(Position("f", 1234, 1, 1234, 2)) == "    "
