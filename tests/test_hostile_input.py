"""Whatever a file holds, reading it ends soon and says what is wrong; it never raises."""

import functools
import json
import os
import random
import time
import tracemalloc
from pathlib import Path

import pytest

from tramai import _yaml_events
from tramai.codec import encode
from tramai.document import excerpt, parse
from tramai.errors import Problem
from tramai.schema import resolve, validate

SCHEMA = {
    "type": "object",
    "required": ["steps"],
    "properties": {
        "name": {"type": "string"},
        "steps": {"type": "array", "items": {"$ref": "#/definitions/step"}},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
    "definitions": {
        "step": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "string", "pattern": "^[a-z]+$"},
                "shell": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"run": {"type": "string"}}}]},
                "foreach": {"type": "object", "properties": {"do": {"items": {"$ref": "#/definitions/step"}}}},
                "save": {"type": "object"},
            },
            "additionalProperties": False,
            "oneOf": [{"required": ["shell"]}, {"required": ["foreach"]}],
        }
    },
}
YAML = """\
# a comment
name: "x\\u00e9 ${{ y }}"
env: {A: NO, B: 'it''s', C: 010}
steps:
  - id: a
    shell: |
      echo one
        two
  - &b
    id: b
    foreach:
      do:
        - {id: c, shell: {run: make}}
    save: {x: 1.10, y: [true, ~, 2e3], z: >-
        folded
        text
      }
"""
YAML = YAML.replace(", z: >-\n        folded\n        text\n      }", "}")
TOML = """\
# a comment
name = "x\\u00e9 ${{ y }}"
env = {A = "NO", B = 'b'}
[[steps]]
id = "a"
shell.run = '''
one
'''
[[steps]]
id = "b"
[steps.save]
x = [1, {y = 2.5}, 1979-05-27, inf]
"z z".w = \"""a\\
   b\"""
"""
NAUGHTY = [
    "", " ", "undefined", "null", "NULL", "nil", "true", "True", "yes", "~", "-", "--", "---", "...", "?", ":",
    "::", "- -",
    "0", "-0", "00", "010", "0x1f", "0o17", "0b1", "1_000", "+12", "1.", ".5", "1e400", "1e-400", "-1e400",
    "12e7890", "NaN",
    ".nan", ".inf", "-.inf", "Infinity", "9" * 5000, "0x" + "f" * 5000, "1." + "0" * 5000, "2024-13-45",
    "12:30:61", "22:30",
    "<<", "=", "!", "!!", "&", "*", "&a", "*a", "@x", "`x`", "%x", "|", ">", "|2", "'", '"', "''", '""', "[",
    "]", "{", "}",
    "{{", "}}", "{{ x }}", "${{ x }}", "$${{ x }}", "{%", "#", " #", "a #b", "a: b", "a:b", "\\", "\\u0000",
    "\t", "\r",
    "é", "日本語", "👩‍👩‍👧", "\u202e", "\u200b", "\u2028", "\x85", "\u00a0", "\ufffd", "\ufeff", "\ud800",
    "\udfff", "\uffff",
    "\0", "\x07", "\x1b[31m", "\x7f", "<script>alert(1)</script>", "'; DROP TABLE runs; --",
    "../../etc/passwd", "%s%s%n",
    "$(touch /tmp/x)", "`touch /tmp/x`", "!!python/object/apply:os.system [id]", "__import__('os')", "ﷺ" * 100,
]  # fmt: skip


def examine(text, file="w.yaml"):
    """Read, resolve, validate and draw; everything that must not raise."""
    document = parse(text, file=file)
    resolved = resolve(document, SCHEMA)
    problems = (*document.problems, *resolved.problems)
    problems += validate(resolved.data, SCHEMA, document, known=problems)
    for problem in problems:
        assert isinstance(problem, Problem)
        assert problem.code.startswith("TRM1")
        assert problem.position.line >= 1
        assert problem.position.column >= 1
    for problem in problems[:30]:
        assert "^" in excerpt(document.text, problem.position)
    if document.root is None:
        assert problems
    else:
        encode(resolved.data)
    return document, problems


def timed(work, *, seconds):
    started = time.process_time()
    work()
    assert time.process_time() - started < seconds


@pytest.fixture(params=["libyaml", "pure"])
def parser(request, monkeypatch):
    monkeypatch.setattr(_yaml_events, "has_libyaml", lambda: request.param == "libyaml")


def test_the_samples_are_valid():
    assert not parse(YAML, file="w.yaml").problems
    assert not parse(TOML, file="w.toml").problems


@pytest.mark.parametrize(
    "place", ["{}", "a: {}\n", "- {}\n", "{}: 1\n", "a: '{}'\n", 'a: "{}"\n', "a: |\n  {}\n", "a: [{}]\n"]
)
def test_naughty_strings_anywhere_in_yaml_give_data_or_problems(place, parser):
    for text in NAUGHTY:
        examine(place.replace("{}", text))


@pytest.mark.parametrize(
    "place", ["{}", "a = {}\n", "{} = 1\n", "a = '{}'\n", 'a = "{}"\n', '[{}]\na = """{}"""\n', "a = [{}]\n"]
)
def test_naughty_strings_anywhere_in_toml_give_data_or_problems(place):
    for text in NAUGHTY:
        examine(place.replace("{}", text), "w.toml")


def test_naughty_text_that_is_escaped_comes_back_unchanged(parser):
    for text in NAUGHTY:
        if any(0xD800 <= ord(char) < 0xE000 for char in text):
            continue
        escaped = "".join(f"\\U{ord(char):08X}" for char in text)
        assert resolve(parse(f'name: "{escaped}"', file="w.yaml"), SCHEMA).data["name"] == text


@pytest.mark.parametrize(("text", "file"), [(YAML, "w.yaml"), (TOML, "w.toml")])
def test_every_prefix_of_a_valid_file_gives_data_or_problems(text, file):
    for end in range(len(text)):
        examine(text[:end], file)


def test_every_prefix_of_a_valid_file_is_bearable_for_the_pure_parser(monkeypatch):
    monkeypatch.setattr(_yaml_events, "has_libyaml", lambda: False)
    for end in range(0, len(YAML), 3):
        examine(YAML[:end])


def mutations(text, *, count, seed):
    chance = random.Random(seed)
    pieces = [*NAUGHTY, *"{}[]:,-?&*!|>'\"%@`#\n\t \\=."]
    for _ in range(count):
        changed = text
        for _ in range(chance.randint(1, 4)):
            at, end = sorted((chance.randrange(len(changed) + 1), chance.randrange(len(changed) + 1)))
            kind = chance.randrange(4)
            if kind == 0:
                changed = changed[:at] + chance.choice(pieces) + changed[at:]
            elif kind == 1:
                changed = changed[:at] + changed[min(end, at + 8) :]
            elif kind == 2:
                changed = changed[:at] + changed[at:end][:200] * 2 + changed[end:]
            else:
                changed = changed[:at] + chance.choice(pieces) + changed[at + 1 :]
        yield changed


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("text", "file"), [(YAML, "w.yaml"), (TOML, "w.toml")])
def test_random_changes_give_data_or_problems(text, file, seed):
    for changed in mutations(text, count=150, seed=seed):
        examine(changed, file)


def test_random_changes_are_bearable_for_the_pure_parser(monkeypatch):
    monkeypatch.setattr(_yaml_events, "has_libyaml", lambda: False)
    for changed in mutations(YAML, count=150, seed=9):
        examine(changed)


def test_random_bytes_give_problems():
    chance = random.Random(1)
    for size in (1, 10, 100, 1000, 10_000):
        for file in ("w.yaml", "w.toml"):
            _, problems = examine(chance.randbytes(size), file)
            assert problems


@functools.cache
def bombs():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    many = 1024 * 1024 - 100
    return {
        "aliases of aliases": "\n".join(levels),
        "aliases of one long text": "a: &a '" + "x" * 500_000 + "'\nb: [" + "*a, " * 900 + "]",
        "a self-referring alias": "a: &a {b: *a}",
        "brackets": "[" * 5000,
        "brackets as large as a file may be": "a: " + "[" * many,
        "braces": "{" * 5000,
        "mappings inside mappings": "\n".join(" " * n + f"k{n}:" for n in range(1000)),
        "mappings inside mappings, in flow": "{a: " * 5000,
        "lists on one line": "- " * 5000 + "x",
        "questions": "? " * 5000 + "x",
        "a huge line": "a: '" + "x" * many + "'",
        "a huge plain line": "a: " + "x " * (many // 2),
        "a huge key": "x" * many + ": 1",
        "colons": "a" + ":" * many,
        "dashes": "-" * many,
        "documents": "---\n" * (many // 4),
        "anchors": "".join(f"a{n}: &a{n} 1\n" for n in range(10_000)),
        "one key over and over": "a: 1\n" * 10_000,
        "comments": "# x\n" * (many // 4),
        "blank lines": "\n" * many,
        "spaces": " " * many,
        "quotes": '"' * many,
        "backslashes": 'a: "' + "\\" * (many // 2),
        "tags": "a: " + "!x " * (many // 3),
        "digits": "a: " + "9" * many,
        "a float of digits": "a: 0." + "9" * many,
        "tabs": "a:\n" + "\t" * many,
        "flow items": "a: [" + "1," * 100_000 + "]",
    }


@pytest.mark.parametrize("name", bombs())
def test_yaml_bombs_end_soon(name):
    timed(lambda: examine(bombs()[name]), seconds=20)


@pytest.mark.parametrize("name", [name for name in bombs() if "alias" in name or "brackets" in name])
def test_small_texts_that_stand_for_large_data_take_little_memory(name):
    tracemalloc.start()
    try:
        examine(bombs()[name])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 1024 * 1024


@functools.cache
def toml_bombs():
    many = 1024 * 1024 - 100
    return {
        "brackets": "a = " + "[" * 100_000,
        "braces": "a = " + "{a=" * 100_000,
        "dots": "a" + ".a" * (many // 2 - 10) + " = 1",
        "dotted table": "[a" + ".a" * (many // 2 - 10) + "]",
        "tables": "".join(f"[t{n}]\n" for n in range(10_000)),
        "an array of tables": "[[a]]\n" * 10_000,
        "one table over and over": "[a]\n" * 10_000,
        "keys": "".join(f"k{n} = {n}\n" for n in range(10_000)),
        "digits": "a = " + "9" * many,
        "an open string": 'a = """' + "x" * many,
        "quotes": 'a = """' + '"' * many,
        "backslashes": 'a = "' + "\\" * many,
        "blank lines": "\n" * many,
        "items": "a = [" + "1," * 50_000 + "]",
        "comments": "#\n" * (many // 2),
    }


@pytest.mark.parametrize("name", toml_bombs())
def test_toml_bombs_end_soon(name):
    timed(lambda: examine(toml_bombs()[name], "w.toml"), seconds=20)


def test_reading_takes_time_in_proportion_to_the_file():
    def cost(steps):
        text = "steps:\n" + "".join(f"  - id: a\n    shell: make {n}\n    save: {{x: {n}}}\n" for n in range(steps))
        started = time.process_time()
        document = parse(text, file="w.yaml")
        resolve(document, SCHEMA)
        return time.process_time() - started

    cost(100)
    small = min(cost(1000) for _ in range(3))
    large = min(cost(8000) for _ in range(3))
    assert large < small * 8 * 4


SUITE = os.environ.get("TRAMAI_YAML_TEST_SUITE")


needs_suite = pytest.mark.skipif(
    not SUITE, reason="run tests/fetch_yaml_suite.sh FOLDER, then set TRAMAI_YAML_TEST_SUITE=FOLDER"
)


OLD_RULES = {"652Z-0", "L24T-1", "Y2GN-0"}
"""`{?a: b}`, blanks at the very end of a file, and a `:` in an anchor: both parsers read these by rules of YAML 1.1."""


def suite():
    return sorted(Path(SUITE).glob("*.yaml")) if SUITE else []


@pytest.mark.skipif(
    not SUITE, reason="get the YAML test suite: tests/fetch_yaml_suite.sh FOLDER; TRAMAI_YAML_TEST_SUITE=FOLDER"
)
def test_the_yaml_test_suite_gives_data_or_problems(parser):
    cases = suite()
    assert len(cases) > 300
    for case in cases:
        text = case.read_bytes()
        examine(text)
        examine(b"k:\n" + b"".join(b"  " + line for line in text.splitlines(keepends=True)))


@pytest.mark.skipif(
    not SUITE, reason="get the YAML test suite: tests/fetch_yaml_suite.sh FOLDER; TRAMAI_YAML_TEST_SUITE=FOLDER"
)
def test_the_yaml_test_suite_is_read_as_it_should_be(parser):
    """Where the language takes a valid case, its data is the suite's; where it does not, it says so."""
    compared = 0
    for case in suite():
        if case.stem in OLD_RULES:
            continue
        wanted = Path(f"{case}.json")
        document = parse(case.read_bytes(), file=case.name)
        if not wanted.exists() or document.root is None or document.problems:
            continue
        resolved = resolve(document, {})
        if not resolved.problems:
            assert resolved.data == json.loads(wanted.read_text()), case.name
            compared += 1
    assert compared > 70
