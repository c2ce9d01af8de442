"""Titles, descriptions and examples for every key of the published schema: what an editor shows.

They are for editors alone: what is added here is marked `x-shown`, and no error quotes it.
"""

from __future__ import annotations

from typing import Any

from ._shape import Schema, lookup

SHOWN = "x-shown"
"""Marks a key whose examples were added for editors."""
_STEP = {"id": "greet", "shell": "echo hello"}
_STEPS = [_STEP]
_ITEM = [{"id": "check", "shell": {"run": 'test -f "$FILE"', "env": {"FILE": "${{ item }}"}}}]
_LOOK = [{"id": "look", "shell": {"run": "test -f done", "ok_exit_codes": [0, 1]}}]
_RISK = {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}
_EXAMPLES: dict[str, list[Any]] = {
    ".$schema": ["../schemas/workflow.schema.json"],
    ".name": ["review", "nightly report"],
    ".version": ["1", "2026-03"],
    ".description": ["Reviews a change and writes a report."],
    ".inputs": [{"repo": {"type": "string"}, "limit": {"type": "integer", "default": 20, "minimum": 1}}],
    ".secrets": [{"GITHUB_TOKEN": {"env": "GITHUB_TOKEN"}}],
    ".env": [{"REPO": "${{ inputs.repo }}"}],
    ".limits": [{"max_step_executions": 400, "timeout": "2h"}],
    ".state": [{"found": {"initial": [], "schema": {"type": "array"}}}],
    ".steps": [_STEPS],
    ".outputs": [{"said": "${{ steps.greet.output }}"}],
    ".permits": [{"shell": ["bash", "git"], "http": ["api.github.com"]}],
    ".schedules": [[{"cron": "30 2 * * 1-5", "timezone": "Europe/Berlin"}]],
    ".defaults": [{"ai": {"model": "demo:echo", "timeout": "90s"}}],
    ".concurrency": [{"group": "deploy-${{ inputs.host }}", "on_conflict": "queue"}],
    ".catch": [[{"on": ["timeout"], "do": [{"id": "tell", "shell": "echo late"}]}]],
    ".finally": [[{"id": "tidy", "shell": "rm -rf build", "timeout": "30s"}]],
    "step.id": ["fetch", "run_tests"],
    "step.description": ["Reads only; safe to repeat."],
    "step.retry": [{"max_attempts": 3, "delay": "2s", "backoff": 2, "on": ["network", "http.5xx"]}],
    "step.timeout": ["90s", "20m"],
    "step.deadline": ["1h"],
    "step.catch": [[{"on": ["timeout"], "output": {"results": []}}]],
    "step.output": ["${{ result.stdout | trim }}", {"status": "${{ result.status }}"}],
    "step.schema": [_RISK],
    "step.save": [{"found": "${{ result }}"}],
    "step.ai": [{"model": "demo:echo", "prompt": "How risky is this change? ${{ inputs.title }}", "schema": _RISK}],
    "step.branch": [{"if": "${{ inputs.dry_run }}", "then": _STEPS, "else": []}],
    "step.claude": [{"prompt": "Mend the failing test.", "sandbox": "workspace-write"}],
    "step.codex": [{"prompt": "Review the last commit. Name defects only.", "schema": _RISK}],
    "step.hermes": [{"prompt": "Which files in docs/ are out of date?"}],
    "step.delay": ["10m", {"until": "${{ inputs.start }}"}],
    "step.foreach": [{"items": "${{ inputs.hosts }}", "as": "host", "key": "${{ host }}", "do": _STEPS}],
    "step.gate": ["${{ inputs.score >= 0.8 }}", {"check": "${{ inputs.score >= 0.8 }}", "reason": "too low"}],
    "step.http": [{"get": "https://api.example.com/items", "query": {"limit": "20"}}],
    "step.local": ["${{ inputs.hosts | length }}", {"value": {"total": "${{ inputs.hosts | length }}"}}],
    "step.parallel": [{"items": "${{ inputs.files }}", "max": 4, "do": _ITEM}],
    "step.shell": ["make test", {"run": 'echo "$NAME"', "env": {"NAME": "${{ inputs.name }}"}, "parse": "text"}],
    "step.repeat": [{"max": 5, "until": "${{ steps.look.output.exit_code == 0 }}", "do": _LOOK}],
    "step.call": ["./publish.yaml", {"workflow": "./publish.yaml", "with": {"version": "${{ inputs.version }}"}}],
    "step.mcp": [{"server": {"command": ["my-server"]}, "tool": "search", "arguments": {"q": "${{ inputs.q }}"}}],
    "step.plugin": [{"use": "slack", "with": {"channel": "#releases"}}],
    "verification.shell": [{"run": "git ls-remote --exit-code origin release"}],
    "Ai.system": ["You review changes. Be brief and concrete."],
    "Ai.prompt": ["Summarise ${{ inputs.title }}."],
    "Ai.schema": [_RISK],
    "Ai.temperature": [0.2],
    "Ai.max_output_tokens": [800],
    "Auth.basic": [["${{ secrets.USER }}", "${{ secrets.PASSWORD }}"]],
    "Branch.cases": [{"high": _STEPS, "low": []}],
    "Branch.default": [_STEPS, []],
    "Branch.then": [_STEPS],
    "Branch.else": [_STEPS, []],
    "Claude.prompt": ["Review the last commit. Name defects only."],
    "Claude.cwd": ["build"],
    "Claude.env": [{"API_KEY": "${{ secrets.KEY }}"}],
    "Claude.model": ["sonnet"],
    "Claude.schema": [_RISK],
    "Claude.max_output": ["4MiB"],
    "Codex.prompt": ["Review the last commit. Name defects only."],
    "Codex.cwd": ["build"],
    "Codex.env": [{"API_KEY": "${{ secrets.KEY }}"}],
    "Codex.model": ["gpt-5-codex"],
    "Codex.schema": [_RISK],
    "Codex.max_output": ["4MiB"],
    "Hermes.prompt": ["Review the last commit. Name defects only."],
    "Hermes.cwd": ["build"],
    "Hermes.env": [{"API_KEY": "${{ secrets.KEY }}"}],
    "Hermes.model": ["anthropic/claude-sonnet-4.6"],
    "Hermes.schema": [_RISK],
    "Hermes.max_output": ["4MiB"],
    "Foreach.as": ["host"],
    "Foreach.do": [_ITEM],
    "Gate.reason": ["the score is ${{ inputs.score }}"],
    "Gate.show": ["${{ steps.review.output }}"],
    "Gate.approvers": [["ada", "grace"]],
    "Gate.min": [2],
    "Gate.timeout": ["24h"],
    "Http.query": [{"state": "open", "tag": ["a", "b"]}],
    "Http.headers": [{"Accept": "application/json"}],
    "Http.auth": [{"bearer": "${{ secrets.TOKEN }}"}],
    "Http.json": [{"title": "${{ inputs.title }}"}],
    "Http.form": [{"name": "${{ inputs.name }}"}],
    "Http.body": ["${{ steps.report.output }}"],
    "Http.multipart": [{"title": "${{ inputs.title }}", "document": {"file": "build/report.pdf"}}],
    "Http.max_response": ["256KiB"],
    "Http.max_download": ["200MiB"],
    "Http.paginate": [{"next": "${{ result.links.next }}", "items": "${{ result.body }}"}],
    "Http.proxy_auth": [["me", "${{ secrets.PROXY_PASSWORD }}"]],
    "Http.client_cert": [{"cert": "client.pem", "key": "client.key"}],
    "Http.allow_private": [True, "${{ inputs.private }}"],
    "JsonSchema.$ref": ["#/$defs/item", "schemas/review.json"],
    "JsonSchema.$schema": ["https://json-schema.org/draft/2020-12/schema"],
    "JsonSchema.$id": ["https://example.com/item.json"],
    "JsonSchema.type": ["object", ["string", "null"]],
    "JsonSchema.pattern": ["^[a-z]+$"],
    "JsonSchema.format": ["date-time"],
    "JsonSchema.enum": [["low", "high"]],
    "JsonSchema.const": ["low"],
    "JsonSchema.default": ["low"],
    "JsonSchema.title": ["risk"],
    "JsonSchema.description": ["How risky the change is."],
    "JsonSchema.$comment": ["kept in step with the API"],
    "Limits.max_value": ["32MiB"],
    "Limits.max_state": ["64MiB"],
    "Limits.max_tokens": [200000],
    "Limits.max_cost_usd": [2.5],
    "Limits.timeout": ["2h"],
    "Local.value": [{"total": "${{ inputs.hosts | length }}"}],
    "Local.with": [{"path": "${{ inputs.path }}"}],
    "Mcp.server": [{"command": ["uvx", "mcp-server-time"]}, {"url": "https://mcp.example.com/mcp"}],
    "Mcp.list": [True],
    "Mcp.max_response": ["10MiB"],
    "Parallel.branches": [{"greet": _STEPS, "look": _LOOK}],
    "Parallel.as": ["file"],
    "Parallel.do": [_ITEM],
    "Parallel.max": [4],
    "Permits.mcp": [["github"]],
    "Repeat.do": [_LOOK],
    "Repeat.max": [5],
    "Retry.max_attempts": [3],
    "Retry.backoff": [2],
    "Retry.jitter": [0.1],
    "Schedule.inputs": [{"repo": "acme/shop"}],
    "SecretSource.env": ["GITHUB_TOKEN"],
    "SecretSource.file": ["~/.config/token"],
    "SecretSource.command": [["op", "read", "op://work/github/token"]],
    "SecretSource.keyring": ["tramai/github"],
    "SecretSource.short": [True],
    "Shape.enum": [["low", "high"]],
    "Shape.pattern": ["^[a-z]+$"],
    "Shape.minimum": [1],
    "Shape.maximum": [100],
    "Shape.minLength": [1],
    "Shape.maxLength": [500],
    "Shape.default": ["low"],
    "Shape.description": ["How many at most."],
    "Shape.items": [{"type": "string"}],
    "Shape.properties": [{"note": {"type": "string"}}],
    "Shape.required": [["note"]],
    "Shell.cwd": ["build"],
    "Shell.env": [{"NAME": "${{ inputs.name }}"}],
    "Shell.stdin": ["${{ steps.report.output }}"],
    "Shell.ok_exit_codes": [[0, 1]],
    "Shell.max_output": ["8MiB"],
    "Shell.deny": [["rm"]],
    "Shell.files": [{"CONFIG": "${{ inputs.config }}"}],
    "Shell.sandbox": [True, {"network": True, "write": ["build"]}],
    "Shell.resources": [{"memory": "512MiB", "cpu": "30s"}],
    "Sandbox.network": [True],
    "StateSpec.initial": [0, []],
    "StateSpec.schema": [{"type": "integer"}],
}  # fmt: skip
_DESCRIPTIONS = {
    "JsonSchema.$ref": "A schema in a file of its own, from the folder of this one, or a place in this schema, such as "
    "`#/$defs/item`.",
    "JsonSchema.$schema": "The dialect; draft 2020-12 is what is read here.",
    "JsonSchema.$id": "The name of this schema.",
    "JsonSchema.$comment": "For people; no part of the schema.",
    "JsonSchema.title": "A short name, for people.",
    "JsonSchema.description": "For people, and for models that fill it in.",
    "JsonSchema.format": "A known form of text, such as `date-time`.",
    "JsonSchema.pattern": "A regular expression that must be found in a text.",
    "JsonSchema.const": "The only value allowed.",
    "JsonSchema.default": "For people: the value when none is given.",
    "JsonSchema.patternProperties": "What keys that match a regular expression must look like.",
    "JsonSchema.$defs": "Schemas to refer to.",
    "JsonSchema.definitions": "Schemas to refer to, as in older dialects.",
    "JsonSchema.anyOf": "At least one of these must fit.",
    "JsonSchema.oneOf": "Exactly one of these must fit.",
    "JsonSchema.allOf": "All of these must fit.",
    "JsonSchema.items": "What each item of a list must look like.",
    "JsonSchema.additionalProperties": "What keys that are not named must look like; `false`: there are none.",
    "JsonSchema.not": "This must not fit.",
    "JsonSchema.if": "When this fits, `then` must fit, otherwise `else`.",
    "JsonSchema.then": "What must fit when `if` does.",
    "JsonSchema.else": "What must fit when `if` does not.",
    "JsonSchema.contains": "At least one item of a list must fit.",
    "JsonSchema.propertyNames": "What each key must look like.",
}
_ALIASES = {"InputSpec": "Shape", "verification": "step", "beside": "step"}
"""Definitions with the keys of another one."""


def illustrate(made: Schema) -> None:
    """Give every key of a schema a title, a description and an example, where it has none."""
    _keys("", made, made)
    for name, definition in made["definitions"].items():
        _keys(name, definition, made)


def quotable(schema: Schema) -> list[Any]:
    """The examples of a key that were written for people who made a mistake there."""
    return [] if SHOWN in schema else list(schema.get("examples", []))


def _keys(name: str, definition: Schema, root: Schema) -> None:
    properties = definition.get("properties", {})
    for key, written in properties.items():
        if "properties" in written:  # as under `defaults`: what a verb has there, and what a step has beside it
            _keys(key.capitalize(), written, root)
            if name == "Defaults":
                _keys("beside", written, root)
        properties[key] = _illustrated(name, key, written, root)


def _illustrated(name: str, key: str, written: Schema, root: Schema) -> Schema:
    names = [f"{name}.{key}", f"{_ALIASES.get(name, name)}.{key}"]
    if name == "beside" and "examples" in written and SHOWN not in written:
        names = []
    added: Schema = {}
    if "title" not in written:
        added["title"] = key.replace("_", " ").strip()
    if "description" not in written:
        said = next((_DESCRIPTIONS[one] for one in names if one in _DESCRIPTIONS), None)
        added["description"] = said or _of_definition(written, root) or f"The {key.replace('_', ' ')}."
    shown = next((_EXAMPLES[one] for one in names if one in _EXAMPLES), None)
    if "examples" not in written:
        added |= {"examples": shown or [_example(written, root, 0)], SHOWN: True}
    elif shown is not None:
        added |= {"examples": shown, SHOWN: True}
    if not added:
        return written
    return {"allOf": [written], **added} if "$ref" in written else {**written, **added}


def _of_definition(schema: Schema, root: Schema) -> str | None:
    for part in [schema, *schema.get("allOf", [])]:
        if "$ref" in part and (text := lookup(root, part["$ref"]).get("description")):
            return str(text)
    return None


def _example(schema: Any, root: Schema, depth: int) -> Any:
    """A small value that fits, made out of what the schema says."""
    if not isinstance(schema, dict) or depth > 6:
        return {}
    for word in ("examples", "enum"):
        if schema.get(word):
            return schema[word][0]
    if "const" in schema:
        return schema["const"]
    if "default" in schema:
        return schema["default"]
    if schema.get("$ref") == "#/definitions/step":
        return _STEP
    if "$ref" in schema:
        return _example(lookup(root, schema["$ref"]), root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word) and "properties" not in schema:
            return _example(schema[word][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Schema, root: Schema, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        named = schema.get("properties", {})
        made = {key: _example(named[key], root, depth + 1) for key in schema.get("required", ()) if key in named}
        other = schema.get("additionalProperties")
        return made or ({"name": _example(other, root, depth + 1)} if isinstance(other, dict) else {})
    if kind == "array":
        return [_example(schema.get("items", {"type": "string"}), root, depth + 1)]
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    return {"boolean": True, "null": None}.get(kind, "text")
