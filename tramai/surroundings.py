"""What a workflow needs around it and does not find here: functions, secrets, extras, agents. Always warnings."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from typing import Any

from . import accounts, provider, secret
from .check.scene import Entry, Scene
from .definition import Workflow
from .errors import Pointer, Problem


def problems(
    workflow: Workflow, *, base: str | None = None, providers: Mapping[str, Any] | None = None
) -> tuple[Problem, ...]:
    """What is missing on this machine, in order of the file. No code of the workflow is run, no secret is read.

    `base`: the folder in which a run would be started, to which files of secrets are relative. `providers`: the model
    services of the configuration.
    """
    scene = Scene(workflow)
    where = base or os.getcwd()
    found = [*_secrets(scene, where), *_functions(scene), *_extras(scene), *_agents(scene, where), *_sandboxes(scene)]
    found += _models(scene, providers or {}, where)
    return tuple(sorted(found, key=Problem.sort_key))


def _secrets(scene: Scene, base: str) -> Iterator[Problem]:
    for name, source in scene.workflow.secrets.items():
        if not secret.present(source, base=base):
            message = f"secret `{name}` is not set here ({secret.source_of(source)})"
            hint = "a run needs it; set it before you start one"
            yield scene.problem("TRM391", message, ("secrets", name), hint=hint, key=True, severity="warning")
        for code, message, hint in secret.advice(name, source, base=base):
            yield scene.problem(code, message, ("secrets", name), hint=hint, key=True, severity="warning")


def _functions(scene: Scene) -> Iterator[Problem]:
    folder = os.path.dirname(os.path.abspath(scene.workflow.file)) if scene.workflow.file else os.getcwd()
    for entry in scene.running:
        name = getattr(entry.node.step, "call", None)
        if entry.node.verb == "local" and isinstance(name, str) and (told := _function(scene, name, folder)):
            message, hint = told
            yield scene.problem("TRM390", message, _at(entry, "call"), hint=hint, severity="warning")


def _at(entry: Entry, key: str) -> tuple[str | int, ...]:
    return (*entry.node.at, entry.node.verb, key)


def _function(scene: Scene, name: str, folder: str) -> tuple[str, str] | None:
    """Message and hint, if a function cannot be found without importing anything of the workflow."""
    module, _, attribute = name.partition(":")
    check = f"python -c 'from {module} import {attribute.partition('.')[0]}'"
    path = _source(module, folder)
    if path is None:
        if _installed(module):
            return None
        return (
            f"no module `{module}` is found here",
            f"put it beside the workflow file, or install it; look with {check}",
        )
    names = _names(path)
    first = attribute.partition(".")[0]
    if names is None or first in names:
        return None
    near = scene.did_you_mean(first, sorted(names))
    return (
        f"`{first}` is not seen in {os.path.basename(path)}",
        near or f"if it is made there at run time, look with {check}",
    )


def _source(module: str, folder: str) -> str | None:
    """The file of a module that lies beside the workflow."""
    path = os.path.join(folder, *module.split("."))
    for found in (f"{path}.py", os.path.join(path, "__init__.py")):
        if os.path.isfile(found):
            return found
    return None


def _installed(module: str) -> bool:
    """Whether the first part of a module can be imported: looked up, not imported."""
    from importlib.util import find_spec

    try:
        return find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _names(path: str) -> set[str] | None:
    """The names a source file defines at its top; None when it cannot be told."""
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
            if "*" in names:
                return None
            found.update(names)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            return None
    return found


def _extras(scene: Scene) -> Iterator[Problem]:
    told: set[str] = set()
    for entry in scene.running:
        asked = _servers(entry)
        if asked is not None and "mcp" not in told and not (_installed("mcp") and _installed("httpx2")):
            told.add("mcp")
            message = f"{asked[0]} the extra `mcp`, which is not installed here"
            where = asked[1]
            yield scene.problem("TRM392", message, where, hint="pip install 'tramai[mcp]'", severity="warning")
        model = getattr(entry.node.step, "model", None)
        if entry.node.verb != "ai" or model is None or "${{" in model.text:
            continue
        service = model.text.partition(":")[0].strip()
        if service in provider.SERVICES and service not in told and not _installed("pydantic_ai"):
            told.add(service)
            message = f"the model provider `{service}` needs the extra `ai`, which is not installed here"
            hint = "pip install 'tramai[ai]'"
            yield scene.problem("TRM392", message, _at(entry, "model"), hint=hint, severity="warning")


def _models(scene: Scene, providers: Mapping[str, Any], base: str) -> Iterator[Problem]:
    told: set[str] = set()
    for node, model in accounts.models(entry.node for entry in scene.running):
        service = model.partition(":")[0]
        lack = accounts.lack(model, providers, base=base) if service not in told else None
        if lack is not None:
            told.add(service)
            at = (*node.at, node.verb, "model")
            yield scene.problem(lack.code, lack.message, at, hint=lack.hint, severity="warning")
    if scene.workflow.limits.max_cost_usd is not None:
        yield from _unpriced(scene, providers)


def _unpriced(scene: Scene, providers: Mapping[str, Any]) -> Iterator[Problem]:
    for node, model in accounts.models(entry.node for entry in scene.running):
        if accounts.unpriced(model, providers):
            message = f"nobody knows the price of `{model}`, and the run has a limit of what it may cost"
            hint = "give its `price` in tramai.toml ([providers.NAME]), or limit max_tokens instead; it is not asked"
            at = (*node.at, node.verb, "model")
            yield scene.problem("TRM328", message, at, hint=hint, severity="warning")


def _servers(entry: Entry) -> tuple[str, Pointer] | None:
    """What asks an MCP server, and where."""
    if entry.node.verb == "mcp":
        return "an mcp step needs", (*entry.node.at, "mcp")
    if any(one.mcp is not None for one in getattr(entry.node.step, "tools", ())):
        return "tools of an MCP server need", _at(entry, "tools")
    return None


def _agents(scene: Scene, base: str) -> Iterator[Problem]:
    """Agents that are not on PATH, unless a workflow or a step has a PATH of its own."""
    from .steps._spawn import search

    told: set[str] = set()
    for entry in scene.running:
        name, install = getattr(entry.node.step, "program", None), getattr(entry.node.step, "install", "")
        if (
            name is None
            or name in told
            or "PATH" in scene.workflow.env
            or "PATH" in getattr(entry.node.step, "env", {})
        ):
            continue
        told.add(name)
        if search(name, os.environ.get("PATH", os.defpath), base) is None:
            message = f"the agent `{name}` is not installed here"
            at = (*entry.node.at, entry.node.verb)
            yield scene.problem("TRM339", message, at, hint=install, key=True, severity="warning")


def _sandboxes(scene: Scene) -> Iterator[Problem]:
    """The first step that asks for a sandbox, where there is no program that makes one."""
    for entry in scene.running:
        if entry.node.verb == "shell" and getattr(entry.node.step, "sandbox", None) is not None:
            from .steps._shell_sandbox import trouble

            if found := trouble():
                message, hint = found
                yield scene.problem("TRM377", message, _at(entry, "sandbox"), hint=hint, severity="warning")
            return
