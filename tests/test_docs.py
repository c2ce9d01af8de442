"""What the documentation shows is true: workflows have no problem, links lead somewhere, commands exist."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tramai import workflow

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PAGES += sorted((ROOT / "tramai" / "topics").glob("*.md"))
MOST_LINES = 150

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)(?P=ticks) *$", re.M | re.S
)
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<to>[^()\s]+(?:\([^()\s]*\))?)\)")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def blocks(path: Path) -> tuple[tuple[str, int, str], ...]:
    """The fenced blocks of a page: language, line, content without its indentation."""
    text = path.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        found.append((match["info"].strip(), text.count("\n", 0, match.start()) + 2, body))
    return tuple(found)


def whole_workflows() -> list[Any]:
    """Every YAML or TOML block with a top-level `tramai` key."""
    return [
        pytest.param(path, language, body, id=f"{name(path)}:{line}")
        for path in PAGES
        for language, line, body in blocks(path)
        if language in {"yaml", "toml"} and re.search(r"^tramai *[:=]", body, re.M)
    ]


@pytest.mark.parametrize(("path", "language", "body"), whole_workflows())
def test_a_workflow_in_the_docs_has_no_problem(path: Path, language: str, body: str, tmp_path: Path) -> None:
    for _, _, other in blocks(path):
        if named := re.match(r"# (\S+\.(?:yaml|toml))\n", other):
            (tmp_path / named[1]).write_text(other, encoding="utf-8")
    file = tmp_path / f"shown.{language}"
    file.write_text(body, encoding="utf-8")
    _, problems = workflow.check_file(str(file))
    assert [(problem.code, problem.message, problem.position) for problem in problems] == []


def fragments() -> list[Any]:
    return [
        pytest.param(language, body, id=f"{name(path)}:{line}")
        for path in PAGES
        for language, line, body in blocks(path)
        if language in {"yaml", "toml"} and not re.search(r"^tramai *[:=]", body, re.M) and not is_suite(body)
    ]


def is_suite(body: str) -> bool:
    """Whether a block is a file of workflow tests; the pages that show one run it."""
    return re.match(r"# \S+\.tramai-test\.(yaml|toml)\n", body) is not None


@pytest.mark.parametrize(("language", "body"), fragments())
def test_a_piece_of_a_workflow_in_the_docs_fits_into_one(language: str, body: str, tmp_path: Path) -> None:
    """A fragment is a list of steps, keys of the workflow, or keys of a step. Names it does not declare are allowed."""
    if language == "yaml":
        indented = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
        steps = f"tramai: 1\nname: piece\nsteps:\n{indented}"
        top = f"tramai: 1\nname: piece\n{body}" + ("" if re.search(r"^steps:", body, re.M) else ONE_STEP)
        keys = f"tramai: 1\nname: piece\nsteps:\n  - id: one\n{indented}" + (
            ""
            if re.search(r"^(shell|http|ai|local|gate|branch|parallel|foreach|repeat|call|delay):", body, re.M)
            else "    local: x\n"
        )
        tries = [steps, top, keys]
    else:
        tries = [
            f'tramai = 1\nname = "piece"\n{body}',
            f'tramai = 1\nname = "piece"\n{body}\n[[steps]]\nid = "one"\nlocal = "x"\n',
        ]
    failures = []
    for index, text in enumerate(tries):
        file = tmp_path / f"piece{index}.{language}"
        file.write_text(text, encoding="utf-8")
        problems = [found for found in workflow.check_file(str(file))[1] if not found.code.startswith("TRM2")]
        if not [found for found in problems if found.severity == "error" and found.code not in UNDECLARED]:
            return
        failures.append([(found.code, found.message) for found in problems])
    pytest.fail(f"it is neither steps, nor top-level keys, nor keys of a step: {failures}")


ONE_STEP = "\nsteps:\n  - {id: one, local: x}\n"
UNDECLARED = {"TRM304"}
"""What a fragment cannot be blamed for: it saves to state that is declared elsewhere."""


def shown_suites() -> list[Any]:
    return [
        pytest.param(path, body, id=f"{name(path)}:{line}")
        for path in PAGES
        for _, line, body in blocks(path)
        if is_suite(body)
    ]


@pytest.mark.parametrize(("path", "body"), shown_suites())
def test_a_test_file_in_the_docs_passes(path: Path, body: str, tmp_path: Path) -> None:
    from tramai.testing import reading, running

    for _, _, other in blocks(path):
        if file := re.match(r"# (\S+\.(?:yaml|toml))\n", other):
            (tmp_path / file[1]).write_text(other, encoding="utf-8")
    named = re.match(r"# (\S+)\n", body)
    assert named is not None
    loaded = reading.load(str(tmp_path / named[1]))
    found = [problem for index, _ in running.cases(loaded) for problem in running.run(loaded, index).problems]
    assert [(problem.code, problem.message) for problem in found] == []


# Commands.


def shown_commands() -> list[Any]:
    found = []
    for path in PAGES:
        for language, line, body in blocks(path):
            if language.startswith("console"):
                for offset, text in enumerate(body.splitlines()):
                    command = re.fullmatch(r"(?:\$ )?((?:\.venv/bin/)?tramai .*)", text)
                    if command and not command[1].endswith("\\"):
                        found.append(pytest.param(command[1], id=f"{name(path)}:{line + offset}"))
    return found


@pytest.mark.parametrize("text", shown_commands())
def test_a_command_in_the_docs_exists_with_its_flags(text: str) -> None:
    import importlib

    from tramai.cli._group import SUMMARIES, group

    words = shlex.split(text, comments=True)[1:]
    verb = next((word for word in words if not word.startswith("-")), None)
    if verb is None:
        known = {option for parameter in group.params for option in parameter.opts} | {"--help", "-h", "--version"}
    else:
        assert verb in SUMMARIES, f"there is no command {verb}"
        command = importlib.import_module(f"tramai.cli.{verb}").command
        for inner in words[words.index(verb) + 1 :]:
            command = getattr(command, "commands", {}).get(inner, command)
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    flags = {word.split("=")[0] for word in words if word.startswith("-") and word != "-"}
    assert flags - known == set()


def test_the_page_of_the_command_line_names_every_document() -> None:
    from tramai.cli import _schemas

    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    listed = re.search(r"^Documents: `([^`]*)`", text, re.M)
    assert listed is not None
    assert listed[1].split() == sorted({*_schemas.schemas(), "test"})


def test_the_page_of_events_names_every_line_of_workers_and_schedulers() -> None:
    text = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    told = {
        found
        for path in (ROOT / "tramai").rglob("*.py")
        for found in re.findall(r'"((?:worker|schedule)\.[a-z_]+)"', path.read_text(encoding="utf-8"))
    }
    assert len(told) > 15
    assert [one for one in sorted(told) if f"`{one}`" not in text] == []


def test_commands_named_in_the_text_exist() -> None:
    from tramai.cli._group import SUMMARIES

    later = {"watch"}
    for path in PAGES:
        text = FENCE.sub("", path.read_text(encoding="utf-8"))
        for verb in re.findall(r"`(?:python -m )?tramai ([a-z]+)\b", text):
            assert verb in SUMMARIES or (path.name == "CONTRIBUTING.md" and verb in later), (
                f"{name(path)}: tramai {verb}"
            )


def test_what_the_text_says_to_type_exists_with_its_verbs_and_flags() -> None:
    import importlib

    from tramai.cli._group import SUMMARIES

    wrong = []
    for path in PAGES:
        text = FENCE.sub("", path.read_text(encoding="utf-8"))
        for verb, rest in re.findall(r"`tramai ([a-z]+)((?: [^`]*)?)`", text):
            if verb not in SUMMARIES:
                continue
            command = importlib.import_module(f"tramai.cli.{verb}").command
            words = rest.split()
            if inner := getattr(command, "commands", None):
                if words and re.fullmatch("[a-z]+", words[0]) and words[0] not in inner:
                    wrong.append(f"{name(path)}: tramai {verb} {words[0]}")
                command = inner.get(words[0] if words else "", command)
            known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
            flags = {word.split("=")[0] for word in words if re.match("--?[a-z]", word)}
            wrong += [f"{name(path)}: tramai {verb} {flag}" for flag in sorted(flags - known)]
    assert wrong == []


# Sessions: a block marked `console checked` is typed in, and what it shows must come out.


def told(text: str) -> str:
    """A line without what differs from run to run: times, ids, digests, columns."""
    for pattern, word in (
        (r"\b[0-9a-f]{8}\b", "ID"),
        (r"\b\d+(\.\d+)?s\b", "TIME"),
        (r"\bsleep \d+", "sleep TIME"),
        (r"(\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d{4}-\d\d-\d\d \d\d:\d\d([+-]\d\d:\d\d)?", "DATE"),
        (r"\s+", " "),
    ):
        text = re.sub(pattern, word, text)
    return text.strip()


class Shell:
    """Types commands into a folder, one of them in the background, and reads what they say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.background: subprocess.Popen[bytes] | None = None
        self.env = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "LC_ALL": "C.UTF-8",
        }
        program = folder / "bin" / "tramai"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} -m tramai "$@"\n')
        program.chmod(0o755)

    def type(self, command: str, expected: list[str]) -> str:
        """What the command says; of one in the background, what it says up to the last line that is expected."""
        if command == "kill -9 %1":
            self._wait_for_sleep()
            self.close()
            return ""
        if command.endswith(" &"):
            return self._start(command.removesuffix(" &"), expected)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            timeout=120,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.stdout.decode()

    def _wait_for_sleep(self) -> None:
        """A person is slower than the first step: kill only while a child really sleeps."""
        for _ in range(600):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    words = (process / "cmdline").read_bytes().split(b"\0")
                    if words[0] == b"sleep" and (process / "cwd").resolve() == self.folder:
                        return
                except OSError:
                    continue
            time.sleep(0.05)
        raise AssertionError("no child sleeps")

    def _start(self, command: str, expected: list[str]) -> str:
        self.background = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.background.stdout is not None
        said = ""
        for line in self.background.stdout:
            said += line.decode()
            if told(line.decode()) == told(expected[-1]):
                return said
        raise AssertionError(f"{command} ended without {expected[-1]!r}:\n{said}")

    def close(self) -> None:
        """Kill what runs in the background, with no time for anything."""
        if self.background is not None:
            self.background.kill()
            self.background.wait(60)
            assert self.background.stdout is not None
            self.background.stdout.close()
            self.background = None


def checked_pages() -> list[Any]:
    marked = [path for path in PAGES if any(language == "console checked" for language, _, _ in blocks(path))]
    return [pytest.param(path, id=name(path)) for path in marked]


@pytest.mark.parametrize("path", checked_pages())
def test_a_page_comes_out_as_shown(path: Path, tmp_path: Path) -> None:
    """Files are the blocks that begin with `# name`; their pauses are shortened."""
    for language, _, body in blocks(path):
        file = re.match(r"# (\S+\.(?:yaml|toml))\n", body)
        if language in {"yaml", "toml"} and file:
            (tmp_path / file[1]).write_text(re.sub(r"sleep \d+", "sleep 1", body), encoding="utf-8")
    shell = Shell(tmp_path)
    try:
        for language, _, body in blocks(path):
            if language != "console checked":
                continue
            for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                command, *expected = part.splitlines()
                said = shell.type(command, expected)
                lines = [told(line) for line in said.splitlines()]
                missing = [line for line in expected if told(line) not in lines]
                assert missing == [], f"$ {command}\n{said}"
    finally:
        shell.close()


def test_the_python_page_runs(tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "python-api.md"
    (tmp_path / "hello.yaml").write_bytes((ROOT / "workflows" / "hello.yaml").read_bytes())
    code = "\n".join(body for language, _, body in blocks(page) if language == "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


# Links.


@functools.cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = 0
        while (unique := slug if not count else f"{slug}-{count}") in found:
            count += 1
        found.add(unique)
    return found


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_link_leads_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]+`(?!\])", "", text)
    for match in LINK.finditer(text):
        leads_somewhere(path, match["to"])


def leads_somewhere(path: Path, to: str) -> None:
    if re.match(r"[a-z]+:", to):
        assert to.startswith("https://"), to
        return
    file, _, anchor = to.partition("#")
    target = (path.parent / file).resolve() if file else path
    assert target.exists(), f"{to} does not exist"
    assert target.is_relative_to(ROOT)
    if anchor:
        assert anchor in anchors(target), f"{name(target)} has no heading {anchor}: {sorted(anchors(target))}"


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / match["to"].partition("#")[0]).resolve()
        for match in LINK.finditer(index.read_text(encoding="utf-8"))
        if not match["to"].startswith("https://")
    }
    pages = {path.resolve() for path in (ROOT / "docs").rglob("*.md")} - {index.resolve()}
    assert sorted(name(path) for path in pages - linked) == []


# The README and the gate.


def commands_of_the_readme() -> list[str]:
    return [line for _, _, body in blocks(README) for line in body.splitlines() if line.startswith("python3 -m venv ")]


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_the_readme_sets_everything_up_in_two_lines() -> None:
    assert commands_of_the_readme() == [
        "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/tramai run workflows/review.yaml",
        "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/python -m pytest -q -n auto",
    ]


def test_the_gate_runs_the_second_line_of_the_readme() -> None:
    shown = subprocess.run(
        ["bash", ROOT / ".ci" / "run", "--show"], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout.splitlines() == [commands_of_the_readme()[1]]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    # Programs of others have an environment of their own, which no test command needs.
    for apart in ("apt-get install", ".real/bin/python -m pip install", '".other/$version/bin/python" -m pip install'):
        assert apart in script
        script = script.replace(apart, "")
    assert "pip install" not in script, "the gate has no set-up of its own"


def test_the_gate_can_be_started() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True, timeout=60)
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")
