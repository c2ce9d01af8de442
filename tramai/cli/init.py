"""`tramai init`: write a first workflow file, with what an editor and version control need beside it."""

from __future__ import annotations

import os
import shlex

import click

from ..errors import ConfigurationError
from ._group import verb
from ._session import Session

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "templates")
TEMPLATES = ("review", "etl", "agent", "approval")
SCHEMA = "workflow.schema.json"
IGNORED = ".tramai/"
"""The folder of the default store and of the logs."""


@verb("init", "tramai init", "tramai init --template approval", "tramai init --template etl --toml flows/")
@click.argument("folder", metavar="[FOLDER]", default=".")
@click.option("--template", type=click.Choice(TEMPLATES), default="review", help="review, etl, agent or approval.")
@click.option("--toml", is_flag=True, help="Write TOML instead of YAML.")
def command(session: Session, folder: str, template: str, toml: bool) -> int:
    """Write a first workflow file into FOLDER (the working folder if none is named).

    All templates run offline. review: checks files and writes a report. etl:
    reads records, keeps the sound ones, writes them. agent: a model plans, works
    and is judged. approval: waits for a person before it releases.

    Beside it: the JSON Schema, which the first line names for editors, and an
    entry for `.tramai/` in .gitignore. Nothing that is there is overwritten.

    Exit status: 0 written, 3 a file is there already, or cannot be written.
    """
    from . import _file_documents
    from ._terminal import safe

    name = f"{template}.{'toml' if toml else 'yaml'}"
    path = os.path.join(folder, name)
    if os.path.lexists(path):
        raise ConfigurationError(what=f"{path} is there already", hint="choose another folder, or rename the file")
    text = _text(template, toml=toml)
    made = _write(folder, name, text)
    shown = shlex.quote(path if folder != "." else name)
    following = [f"tramai validate {shown}", f"tramai plan {shown}", f"tramai run {shown}"]
    if session.json:
        session.emit(_file_documents.Made(template=template, folder=folder, files=made, next=following))
        return 0
    for one in made:
        session.out.line(f"written: {safe(one)}")
    session.note("next:\n" + "\n".join(f"  {safe(line)}" for line in following))
    return 0


def template(name: str) -> str:
    """The text of a packaged workflow."""
    with open(os.path.join(FOLDER, f"{name}.yaml"), encoding="utf-8") as file:
        return file.read()


def _text(name: str, *, toml: bool) -> str:
    """The file, with the line that tells an editor its schema."""
    from .. import document, formatting

    text = f"# yaml-language-server: $schema={SCHEMA}\n{template(name)}"
    if not toml:
        return text
    return formatting.convert_document(document.parse(text, file=f"{name}.yaml"), "toml").text


def _write(folder: str, name: str, text: str) -> list[str]:
    """The paths of the files that were made or added to."""
    from . import _write, schema

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(what=f"cannot make {folder}: {(error.strerror or '').lower()}") from None
    made = [os.path.join(folder, name)]
    _write.replace(made[0], text, exclusive=True)
    beside = os.path.join(folder, SCHEMA)
    if not os.path.lexists(beside):
        with open(os.path.join(schema.folder(), SCHEMA), encoding="utf-8") as file:
            _write.replace(beside, file.read(), exclusive=True)
        made.append(beside)
    if _ignore(os.path.join(folder, ".gitignore")):
        made.append(os.path.join(folder, ".gitignore"))
    return [os.path.normpath(one) for one in made]


def _ignore(path: str) -> bool:
    """Add our folder to an ignore file, unless it is in it; whether that was needed."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        text = ""
    except (OSError, ValueError) as error:
        raise ConfigurationError(what=f"cannot read {path}: {error}") from None
    if {IGNORED, IGNORED.rstrip("/"), f"/{IGNORED}"} & {line.strip() for line in text.splitlines()}:
        return False
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(("" if not text or text.endswith("\n") else "\n") + IGNORED + "\n")
    except OSError as error:
        raise ConfigurationError(what=f"cannot write {path}: {(error.strerror or '').lower()}") from None
    return True
