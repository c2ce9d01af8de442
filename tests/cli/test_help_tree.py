"""The help of every command, also of the verbs of nouns: an example first, and the examples are true."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from tests.cli.conftest import HELLO, write
from tramai.cli._group import Command, group
from tramai.cli._session import Session

Call = Callable[..., Result]
LEAVES = {
    "demo", "run", "resume", "rerun", "validate", "fmt", "convert", "plan", "graph", "digest", "schema",
    "explain", "list", "show", "logs", "export", "diff", "status", "completion", "help", "doctor", "config", "plugin",
}  # fmt: skip
"""Verbs whose examples are carried out here; the others wait for something, or change what is not ours."""


def tree(found: click.Command = group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that lead to it."""
    yield path, found
    if isinstance(found, click.Group):
        context = click.Context(found)
        for name in found.list_commands(context):
            inner = found.get_command(context, name)
            assert inner is not None
            yield from tree(inner, (*path, name))


COMMANDS = {" ".join(path): found for path, found in tree() if path}
EXAMPLES = [
    example for found in COMMANDS.values() for example in (found.examples if isinstance(found, Command) else ())
]


def words(example: str) -> list[str]:
    """The words after `tramai`, without what a shell does with them."""
    whole = shlex.split(example)
    said = whole[whole.index("tramai") + 1 :]
    return said[: next((at for at, word in enumerate(said) if word in ("|", ">", "<")), len(said))]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_of_the_command_itself_comes_first(tramai: Call, name: str) -> None:
    result = tramai(*name.split(), "--help")
    assert result.exit_code == 0
    first, second, *_ = result.stdout.splitlines()
    assert first == "Examples:"
    assert f"tramai {name}" in second or isinstance(COMMANDS[name], click.Group), second
    assert "tramai" in second
    assert f"Usage: tramai {name}" in result.stdout
    assert max(map(len, result.stdout[result.stdout.index("Usage:") :].splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_about_a_command_is_said(name: str) -> None:
    found = COMMANDS[name]
    assert isinstance(found, Command)
    assert found.help
    assert found.short_help
    assert [option.opts for option in found.params if isinstance(option, click.Option) and not option.help] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_parsed(example: str) -> None:
    said, found, path = words(example), group, "tramai"
    while isinstance(found, click.Group) and said and not said[0].startswith("-"):
        name = said[0]
        inner = found.get_command(click.Context(found), name)
        if inner is None:
            break
        found, said, path = inner, said[1:], f"{path} {name}"
    assert isinstance(found, Command), path
    found.make_context(path, list(said), obj=Session([]))


def prepared(tramai: Call) -> None:
    """The files and the runs that the examples speak of."""
    text = HELLO.replace(
        "inputs:\n", "inputs:\n  base: {type: string, default: x}\n  limit: {type: integer, default: 1}\n"
    )
    review = text.replace("name: hello", "name: review")
    for folder in ("workflows", "moved", "flows"):
        Path(folder).mkdir()
    for file in ("review.yaml", "workflows/one.yaml", "moved/review.yaml", "workflow.yaml", "nightly.yaml"):
        write(file, review)
    toml = 'tramai = 1\nname = "x"\n[inputs]\nnotes = {type = "string", default = ""}\n'
    toml += '[[steps]]\nid = "deploy"\nlocal = 1\n'
    for file in ("review.toml", "deploy.toml"):
        write(file, toml)
    write("CHANGES.md", "changes")
    write("review.tramai-test.yaml", "workflow: review.yaml\nallow: [shell]\ntests: [{name: a conflict}]\n")
    write("fails.yaml", "tramai: 1\nname: fails\nsteps: [{id: build, shell: exit 1}]\n")
    write("deploys.yaml", "tramai: 1\nname: deploys\nsteps: [{id: deploy, local: 1}]\n")
    for file in ("review.yaml", "review.yaml", "fails.yaml", "deploys.yaml"):
        tramai("run", file, "-q")


@pytest.mark.parametrize("example", [one for one in EXAMPLES if words(one) and words(one)[0] in LEAVES])
def test_an_example_does_what_it_says(
    tramai: Call, once: Callable[[Callable[[], object]], None], example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(lambda: prepared(tramai))
    monkeypatch.setenv("TMPDIR", str(Path.cwd()))
    said = [part for word in words(example) for part in (glob.glob(word) or [word] if "*" in word else [word])]
    said = [word if word != "k3f9q2mz" else "@last:review" for word in said]
    if "build" in said:
        said = [word if word != "@last:review" else "@failed" for word in said]
    stdin = Path("review.toml" if "yaml" in said else "review.yaml").read_text() if "-" in said else None
    result = tramai(*said, stdin=stdin)
    # A failed run fails again, a file that is not in order is told; nothing is misunderstood, missing or broken.
    assert result.exit_code in (0, 1), result.stderr
