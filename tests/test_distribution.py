"""What is put on PyPI: the wheel and the source archive hold what they should, and nothing that lies about."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

import tramai

ROOT = Path(__file__).resolve().parent.parent
ENDINGS = {".py", ".md", ".yaml", ".txt", ".typed", ".json"}


def tracked() -> list[str]:
    try:
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both archives, built from the files that git knows of and some that it does not."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install -e '.[test]'")
    base = tmp_path_factory.mktemp("distribution")
    source = base / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    for stray in (".tramai/tramai.db", ".env", "tramai/__pycache__/x.pyc", "notes.txt", "dist/old.whl"):
        (source / stray).parent.mkdir(parents=True, exist_ok=True)
        (source / stray).write_text("stray", encoding="utf-8")
    line = [sys.executable, "-m", "hatchling", "build", "-d", str(base / "dist")]
    done = subprocess.run(line, cwd=source, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return base / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[zipfile.ZipFile]:
    (found,) = built.glob("*.whl")
    with zipfile.ZipFile(found) as opened:
        yield opened


def test_the_wheel_is_for_every_python_3_and_named_as_the_version(built: Path) -> None:
    assert [path.name for path in built.glob("*.whl")] == [f"tramai-{tramai.__version__}-py3-none-any.whl"]


def test_the_wheel_holds_the_package_and_the_schemas_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    package = {name for name in tracked() if name.startswith("tramai/")}
    schemas = {f"tramai/{name}" for name in tracked() if name.startswith("schemas/")}
    about = f"tramai-{tramai.__version__}.dist-info"
    expected = {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    assert set(wheel.namelist()) == package | schemas | expected
    assert {PurePosixPath(name).suffix for name in package | schemas} <= ENDINGS


@pytest.mark.parametrize(
    "name",
    [
        "tramai/py.typed",
        "tramai/__main__.py",
        "tramai/cli/help.txt",
        "tramai/explain/TRM104.md",
        "tramai/schemas/workflow.schema.json",
        "tramai/templates/review.yaml",
        "tramai/testing/pytest_plugin.py",
    ],
)
def test_the_wheel_holds_what_is_read_at_run_time(name: str, wheel: zipfile.ZipFile) -> None:
    assert wheel.read(name) or name.endswith("py.typed")


def test_the_wheel_works_from_where_it_was_unpacked(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "unpacked")

    def call(*words: str) -> str:
        line = [sys.executable, "-P", "-m", "tramai", *words]
        done = subprocess.run(
            line,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "unpacked")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert call("--version") == f"tramai {tramai.__version__}\n"
    assert call("explain", "TRM104").startswith("TRM104")
    assert '"$schema"' in call("schema", "workflow")
    call("init", "--template", "review", "made")
    assert "no problems" in call("validate", "made")


def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"tramai-{tramai.__version__}.dist-info/METADATA").decode())


def test_the_metadata_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    said = metadata(wheel)
    assert said["Name"] == "tramai"
    assert said["Version"] == tramai.__version__
    assert said["Requires-Python"] == ">=3.11"
    assert said["License-Expression"] == "Apache-2.0"
    assert said["License-File"] == "LICENSE"
    assert said["Description-Content-Type"] == "text/markdown"
    assert str(said.get_payload()).startswith("# tramai\n")
    assert {word.partition(",")[0] for word in said.get_all("Project-URL") or []} == {
        "Homepage",
        "Documentation",
        "Changelog",
        "Issues",
    }
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(said.get_all("Provides-Extra") or []) == set(extras) >= {"ai", "keyring", "mcp", "postgres", "test"}
    page = (ROOT / "docs" / "reference" / "installation.md").read_text(encoding="utf-8")
    assert [name for name in sorted(extras) if name != "test" and f"`tramai[{name}]`" not in page] == []


def test_the_classifiers_exist_and_name_the_versions_that_are_tested(wheel: zipfile.ZipFile) -> None:
    found = metadata(wheel).get_all("Classifier") or []
    versions = {word.rpartition(" ")[2] for word in found if word.startswith("Programming Language :: Python :: 3.")}
    assert versions == {"3.11", "3.12", "3.13"}
    assert "Typing :: Typed" in found
    known = pytest.importorskip("trove_classifiers", reason="it comes with hatchling")
    assert set(found) <= known.classifiers


def test_the_commands_and_plugins_that_it_installs(wheel: zipfile.ZipFile) -> None:
    text = wheel.read(f"tramai-{tramai.__version__}.dist-info/entry_points.txt").decode()
    assert "tramai = tramai.cli.entry:main" in text
    assert "[pytest11]\ntramai = tramai.testing.pytest_plugin" in text


def test_the_source_archive_holds_what_git_knows_of(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as opened:
        names = {member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()}
    # What is about the place where it is developed.
    apart = {name for name in tracked() if name.startswith(".github/")}
    assert names - {"PKG-INFO"} == set(tracked()) - apart
