"""Files: what YAML and TOML do to values, duplicates, bombs, and errors that mislead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .support import call, content, measure, problems, save, shown, text_of, workflow

# A01


def test_words_that_old_yaml_takes_for_booleans_stay_text() -> None:
    save(
        """
        - id: on
          shell: {run: 'printf %s "$COUNTRY $FLAG"', env: {COUNTRY: NO, FLAG: "${{ inputs.flag }}"}, parse: text}
        - id: pick
          branch:
            select: ${{ "no" }}
            cases:
              no: [{id: in_no, local: no}]
              yes: []
        - id: data
          local: {value: {word: no, real: true, other: false}}
        """,
        """
        inputs: {flag: {type: string, default: off}}
        outputs: {on: "${{ steps.on.output }}", pick: "${{ steps.pick.output }}", data: "${{ steps.data.output }}"}
        """,
    )
    assert call("run", "case.yaml").outputs == {
        "on": "NO off",
        "pick": {"in_no": "no"},
        "data": {"word": "no", "real": True, "other": False},
    }


# A03

ODD = {
    "a key twice": (
        workflow("- id: a\n  shell: touch ran\n  timeout: 1s\n  timeout: 2s"),
        "TRM103", 8, "duplicate key `timeout`", 7,
    ),
    "an id twice": (workflow("- {id: a, shell: touch ran}\n- {id: a, shell: touch ran}"), "TRM211", 6, "`a`", 5),
    "nothing": ("", "TRM118", 1, "empty", None),
    "only comments": ("# one\n# two\n", "TRM118", 1, "empty", None),
    "a list": ("- shell: touch ran\n", "TRM118", 1, "list", None),
    "no steps": ("tramai: 1\nname: case\nsteps:\n", "TRM106", 3, "`steps` is empty", None),
    "two documents": (workflow("- {id: a, shell: touch ran}") + "---\na: 1\n", "TRM111", 6, "second document", 1),
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
def test_an_odd_document_is_refused_with_its_place(what: str) -> None:
    text, code, line, words, other = ODD[what]
    Path("odd.yaml").write_text(text)
    (problem,) = problems("odd.yaml")
    assert (problem["code"], problem["line"]) == (code, line)
    assert words in problem["message"]
    assert [place["line"] for place in problem["related"]] == ([other] if other else [])
    assert "NoneType" not in text_of("validate", "odd.yaml")
    assert not Path("ran").exists()


def test_a_toml_table_twice_names_both_lines() -> None:
    Path("odd.toml").write_text(
        'tramai = 1\nname = "case"\n[env]\nA = "1"\n[env]\nB = "2"\n[[steps]]\nid = "a"\nshell = "touch ran"\n'
    )
    (problem,) = problems("odd.toml")
    assert (problem["code"], problem["line"], problem["related"][0]["line"]) == ("TRM103", 5, 3)
    assert not Path("ran").exists()


# A05

SCRIPT = workflow(
    """
    - id: a
      shell:
        run: |
          printf one

          printf "two%s" "$(printf 'x\\n' | od -An -c | tr -d ' ')"
        parse: text
    """,
    'outputs: {it: "${{ steps.a.output }}"}',
)
SCRIPT_TOML = """\
tramai = 1
name = "case"
outputs = {it = "${{ steps.a.output }}"}
[[steps]]
id = "a"
[steps.shell]
parse = "text"
run = '''
printf one

printf "two%s" "$(printf 'x\\n' | od -An -c | tr -d ' ')"
'''
"""
SAVED = {
    "LF": lambda text: text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "BOM and CRLF": lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    "mixed": lambda text: text.replace("\n", "\r\n", 6).encode(),
}


def test_a_byte_order_mark_and_line_ends_change_nothing() -> None:
    digests = set()
    for text, suffix in ((SCRIPT, "yaml"), (SCRIPT_TOML, "toml")):
        for saved in SAVED.values():
            Path(f"case.{suffix}").write_bytes(saved(text))
            assert call("run", f"case.{suffix}").outputs == {"it": "onetwox\\n"}
            digests.add(call("digest", f"case.{suffix}").last["files"][0]["digest"])
    assert len(digests) == 1


def test_a_byte_order_mark_inside_a_file_is_named() -> None:
    Path("case.yaml").write_text("---\n\ufeff" + SCRIPT, encoding="utf-8")
    (problem,) = problems("case.yaml")
    assert (problem["code"], problem["line"], problem["column"]) == ("TRM110", 2, 1)
    assert "U+FEFF" in problem["message"]


def test_a_checkpoint_that_was_saved_with_other_line_ends_still_loads() -> None:
    save("- {id: a, local: 'one'}\n- {id: b, shell: test -e go}", "outputs: {a: '${{ steps.a.output }}'}")
    run = call("run", "case.yaml", "--store", "markdown:runs").lines[0]["run_id"]
    file = Path("runs", run, "checkpoint.md")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    Path("go").touch()
    assert call("resume", run, "--store", "markdown:runs").outputs == {"a": "one"}


# A06


def test_dates_are_text_before_and_after_a_resume() -> None:
    save(
        """
        - {id: a, local: "${{ [state.since, state.odd, inputs.since] }}"}
        - {id: b, shell: 'test -e go'}
        """,
        """
        inputs: {since: {type: string, default: 2024-01-15}}
        state: {since: {initial: 2024-01-15T10:00:00Z}, odd: {initial: 2024-13-45}}
        outputs: {a: "${{ steps.a.output }}", since: "${{ state.since }}"}
        """,
    )
    wanted = ["2024-01-15T10:00:00Z", "2024-13-45", "2024-01-15"]
    assert call("run", "case.yaml").status == 1
    assert shown()["state"] == {"since": wanted[0], "odd": wanted[1]}
    Path("go").touch()
    assert call("resume", "@last").outputs == {"a": wanted, "since": wanted[0]}


# A07


def test_the_digits_of_a_large_integer_are_kept_everywhere() -> None:
    big, huge = 738529527931269425, 12345678901234567890
    save(
        f"""
        - id: fetch
          shell: {{run: "echo '{{\\"id\\": {big}}}'", parse: json}}
          output: ${{{{ result.value.id }}}}
          save: {{seen: "${{{{ result.value.id }}}}"}}
        - id: told
          shell:
            run: test -e go; printf "%s %s" "$SEEN" "$HUGE"
            parse: text
            env: {{SEEN: "${{{{ steps.fetch.output }}}}", HUGE: "${{{{ state.huge }}}}"}}
        """,
        f"""
        state: {{seen: {{initial: 0}}, huge: {{initial: {huge}}}}}
        outputs:
          told: ${{{{ steps.told.output }}}}
          seen: ${{{{ state.seen }}}}
          huge: ${{{{ state.huge }}}}
          same: ${{{{ steps.fetch.output == {big} and steps.fetch.output != {big - 49} }}}}
        """,
    )
    assert call("run", "case.yaml").status == 1
    assert shown()["state"] == {"seen": big, "huge": huge}
    assert str(huge) in text_of("show", "@last", "-v")
    Path("go").touch()
    assert call("resume", "@last").outputs == {"told": f"{big} {huge}", "seen": big, "huge": huge, "same": True}


def test_a_number_beyond_all_floats_is_refused() -> None:
    save("- {id: a, local: 1}", "state: {n: {initial: 1e400}}")
    (problem,) = problems("case.yaml")
    assert (problem["code"], problem["line"]) == ("TRM119", 3)
    save("- {id: a, shell: {run: echo 1e400, parse: json}}")
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["type"]) == (1, "invalid_output")


# A08

LEVELS = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
LEVELS += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10)]
BOMBS = {
    "aliases": ("\n".join(LEVELS), "TRM114", 5),
    "itself": ("a: 1\nb: &b [*b]\n", "TRM114", 2),
    "brackets": ("a: 1\nb: " + "[" * 5000, "TRM115", 2),
    "python": ("a: 1\nb: !!python/object/apply:os.system [touch pwned]\n", "TRM112", 2),
    "tag": ("a: 1\nb: !foo 1\n", "TRM112", 2),
}


def test_bombs_end_soon_and_cheaply_with_a_line_each() -> None:
    for name, (text, _, _) in BOMBS.items():
        Path(f"{name}.yaml").write_text(text)
    measured = measure("validate", *(f"{name}.yaml" for name in BOMBS), "--json")
    assert (measured.status, measured.err) == (1, "")
    assert measured.seconds < 3
    assert measured.megabytes < 300
    for file, (_, code, line) in zip(json.loads(measured.out)["files"], BOMBS.values(), strict=True):
        assert (code, line) in [(problem["code"], problem["line"]) for problem in file["problems"]]
    assert not Path("pwned").exists()


# A09

MISTAKES: dict[str, tuple[str, str, int, int, str, str]] = {
    "a misspelt key": ("- id: a\n  shell: {rnu: ls}", "TRM104", 6, 13, "/steps/0/shell/rnu", "did you mean `run`?"),
    "a misspelt verb": ("- id: a\n  htpp: {get: 'https://example.com'}", "TRM104", 6, 5, "/steps/0/htpp", "`http`"),
    "a boolean for a number": (
        "- id: a\n  shell: ls\n  retry: {max_attempts: true}", "TRM106", 7, 27, "/steps/0/retry/max_attempts", "",
    ),
    "a fraction for a number": (
        "- id: a\n  shell: ls\n  retry: {max_attempts: 3.5}", "TRM106", 7, 27, "/steps/0/retry/max_attempts", "",
    ),
    "a text for a number": (
        "- id: a\n  shell: ls\n  retry: {max_attempts: '3'}", "TRM106", 7, 27, "/steps/0/retry/max_attempts", "3",
    ),
    "a space too many": ("- id: a\n   shell: ls", "TRM101", 6, 11, "", ""),
    "a tab": ("- id: a\n\tshell: ls", "TRM101", 6, 3, "", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_one_mistake_is_one_problem_in_its_place(what: str) -> None:
    steps, code, line, column, path, help = MISTAKES[what]
    save(steps)
    (problem,) = problems("case.yaml")
    assert (problem["code"], problem["line"], problem["column"]) == (code, line, column)
    if path:
        assert problem["path"] == path
    assert help in (problem["hint"] or "")
    assert "was expected" not in problem["message"]
    said = text_of("validate", "case.yaml")
    assert f"case.yaml:{line}:{column}" in said
    assert re.search(r"^ +\| +\^+", said, re.MULTILINE)


# A11


def test_an_expression_without_quotes_is_told_to_have_them() -> None:
    save("- id: a\n  shell: {{ params.x }}")
    (problem,) = problems("case.yaml")
    assert (problem["code"], problem["line"]) == ("TRM120", 6)
    assert problem["hint"] == 'quote the expression: "${{ params.x }}"'


def test_braces_of_others_reach_a_command_unchanged() -> None:
    text = '{"a": {"b": {{ "x" }} }} ${HOME} {{.ID}} }} {% x %} {# y #}'
    save(
        f"""
        - {{id: a, shell: {{argv: [printf, "%s", '{text}'], parse: text}}}}
        - {{id: b, shell: {{run: "printf %s '{{{{.ID}}}}'", parse: text}}}}
        - {{id: c, ai: {{model: "demo:echo", prompt: '{text.replace("{% x %} ", "")}'}}}}
        - {{id: d, local: "a $${{{{ literal }}}}"}}
        """,
        "outputs: {a: '${{ steps.a.output }}', b: '${{ steps.b.output }}', c: '${{ steps.c.output }}', "
        "d: '${{ steps.d.output }}'}",
    )
    wanted: dict[str, Any] = {"a": text, "b": "{{.ID}}", "c": text.replace("{% x %} ", ""), "d": "a ${{ literal }}"}
    assert call("run", "case.yaml").outputs == wanted
    assert content("pwned") == ""
