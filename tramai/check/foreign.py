"""Templates of other tools, in texts where they stay what they are: `{{ x }}`, `${x}`, `$NAME`, `~`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._shape import replace
from ..errors import Pointer, Problem
from ..expression import Prompt, Template, Value
from .scene import Field, Scene

_ROOTS = r"(?:inputs|state|steps|secrets|env|run)"
_BRACES = re.compile(
    rf"(?:\$[ ]|(?<![${{{{]))\{{\{{\s*({_ROOTS}\.[\w.]+)[^{{}}]*\}}\}}"  # {{ inputs.x }}, $ {{ inputs.x }}
    rf"|(?<!\$)\$\{{\s*({_ROOTS}\.[\w.]+)[^{{}}]*\}}"  # ${inputs.x}
    rf"|\$\(\(?\s*({_ROOTS}\.[\w.]+)\s*\)\)?"  # $(inputs.x)
)
_SHELL = re.compile(r"\$\{?([A-Z_][A-Z0-9_]*)\}?|\$\([a-z][\w -]*\)", re.A)
_COMMENT = re.compile(r"(?<!\{)\{#(?!#).*?#\}", re.S)
_TAG = re.compile(r"\{%-?\s*(if|for|set|else|elif|endif|endfor)\b")
_NO_SHELL = {
    "http": frozenset(("get", "post", "put", "patch", "delete", "head", "query", "headers", "auth")),
    "shell": frozenset(("env", "cwd")),
}
"""Fields in which the variables of a shell mean nothing."""


def templates(scene: Scene) -> Iterator[Problem]:
    """What looks like a template of ours and is none."""
    told = {scene.setting(node, finding.pointer) for node, finding in scene.findings}
    for field in scene.fields:
        for at, text in _texts(field):
            if at in told or scene.is_blamed(at, 0, len(text) + 1):
                continue
            found = _in_text(scene, field, text)
            if found is not None:
                what, hint, start, end = found
                fix = _mended(at, text, hint, start, end)
                yield scene.problem("TRM260", what, at, hint=hint, range=(start, end), severity="warning", fix=fix)
    for entry in scene.running:
        script = getattr(entry.node.step, "run_", None)
        if entry.node.verb == "shell" and isinstance(script, str) and (braces := _BRACES.search(script)):
            name = next(filter(None, braces.groups()))
            word = name.rpartition(".")[2].upper()
            hint = f'write "${word}" and give the value by env: {{{word}: "${{{{ {name} }}}}"}}'
            what = f"`{braces[0]}` stays as it is: the script is not templated"
            at = scene.setting(entry.node, ("run",))
            yield scene.problem("TRM260", what, at, hint=hint, range=braces.span(), severity="warning")


def _mended(at: Pointer, text: str, hint: str, start: int, end: int) -> tuple[dict[str, object], ...] | None:
    """The text with our own template in it, where the name alone stands in the other one."""
    better = hint.removeprefix("write ")
    if not better.startswith("${{ ") or text[start:end].strip("${}( )") != better.strip("${} "):
        return None
    return (replace(at, text[:start] + better + text[end:]),)


def mentioned(scene: Scene) -> set[tuple[str, str]]:
    """Section and name of what stands in such a template: it is used, in intention."""
    found: set[tuple[str, str]] = set()
    for field in scene.fields:
        for _, text in _texts(field):
            names = [name for groups in _BRACES.findall(text) for name in groups if name]
            found.update((name.split(".")[0], name.split(".")[1]) for name in names)
            found.update(re.findall(r"\b(inputs|state|secrets)\.(\w+)", text if is_bare(scene, text) else ""))
    for entry in scene.running:
        script = getattr(entry.node.step, "run_", None)
        for groups in _BRACES.findall(script) if isinstance(script, str) else ():
            found.update((name.split(".")[0], name.split(".")[1]) for name in groups if name)
    return found


def _texts(field: Field) -> Iterator[tuple[Pointer, str]]:
    thing = field.thing
    if isinstance(thing, Template):
        if _may_be(thing.text):
            yield field.pointer, thing.text
    elif isinstance(thing, Value):
        yield from _inside(thing.data, field.pointer)


def _inside(data: object, at: Pointer) -> Iterator[tuple[Pointer, str]]:
    if isinstance(data, str):
        if _may_be(data):
            yield at, data
    elif isinstance(data, dict):
        for key, item in data.items():
            yield from _inside(item, (*at, key))
    elif isinstance(data, list):
        for index, item in enumerate(data):
            yield from _inside(item, (*at, index))


_BARE = re.compile(
    r"(inputs|steps|state|env|run|result|error)\.(\w+)((?:\.\w+|\[\d+\])*)"
    r"(?:\s*(?:[-+*/<>=!|~]|and |or |is |in ).*)?",
    re.S,
)


_OF_RUN = frozenset(("id", "workflow", "version", "attempt", "started_at", "started_by"))


def is_bare(scene: Scene, text: str, area: str = "") -> bool:
    """Whether a text is an expression over what is declared, without `${{ }}`. `area`: the key it stands in."""
    found = _BARE.fullmatch(text.strip())
    if found is None:
        return False
    if found[1] == "steps":
        return found[2] in scene.steps and bool(found[3])
    if found[1] in ("result", "error"):
        return area in (("output", "save") if found[1] == "result" else ("catch",))
    return found[2] in (_OF_RUN if found[1] == "run" else getattr(scene.workflow, found[1]))


_STARTS = ("inputs.", "steps.", "state.", "env.", "run.", "result.", "error.", "~")


def _may_be(text: str) -> bool:
    return "$" in text or "{{" in text or "{%" in text or "{#" in text or text.startswith(_STARTS)


def _in_text(scene: Scene, field: Field, text: str) -> tuple[str, str, int, int] | None:
    """What, a hint and the place of the first thing that is not replaced."""
    if braces := _BRACES.search(text):
        name = next(filter(None, braces.groups()))
        return f"`{braces[0]}` stays as it is", f"write ${{{{ {name} }}}}", *braces.span()
    if field.area != "items" and field.name != "items" and is_bare(scene, text, field.area):
        return f"`{text}` is text: nothing of it is evaluated", f"write ${{{{ {text} }}}}", 0, len(text)
    if isinstance(field.thing, Prompt) and (comment := _COMMENT.search(text)):
        return "this comment stays in the text", "comments are written {## … ##}", *comment.span()
    if (tag := _TAG.search(text)) and not isinstance(field.thing, Prompt):
        hint = "tags are for prompts; here write ${{ a if b else c }}"
        return f"`{tag[0]}` stays as it is", hint, *tag.span()
    entry = field.entry
    if entry is None or field.area != entry.node.verb:
        return None
    if field.name == "cwd" and text.startswith("~"):
        return "`~` stays as it is", "write the folder itself, relative to where the run is started", 0, 1
    plain = field.name in _NO_SHELL.get(field.area, ()) or (field.name == "argv" and _is_program(scene, field))
    if plain and (variable := _SHELL.search(text)) and _is_meant(scene, field, variable[1]):
        return (
            f"`{variable[0]}` stays as it is: no shell reads this",
            _of_variable(scene, variable[1]),
            *variable.span(),
        )
    return None


def _is_meant(scene: Scene, field: Field, name: str | None) -> bool:
    """Whether a variable is meant: a `$` may stand in what is searched for, or in a password."""
    declared = {*scene.workflow.env, *scene.workflow.secrets, "HOME", "PATH", "PWD", "USER"}
    return field.name not in ("query", "headers", "auth") or name in declared


_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "fish", "ssh", "env", "xargs", "find", "docker", "kubectl"))


def _is_program(scene: Scene, field: Field) -> bool:
    """Whether the program of an `argv` is not one that reads such texts itself."""
    argv = getattr(field.entry.node.step, "argv", None) if field.entry is not None else None
    return argv is not None and argv[0].text.rpartition("/")[2] not in _SHELLS


def _of_variable(scene: Scene, name: str | None) -> str:
    if name is None:
        return "let a step run the command, and read its output"
    if name in scene.workflow.env:
        return f"write ${{{{ env.{name} }}}}"
    return f"declare env: {{{name}: …}} at the top and write ${{{{ env.{name} }}}}, or use a script in `run`"
