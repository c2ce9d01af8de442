"""Changes of a workflow that change what it means, by name: each field of each verb, and each order that matters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.workflows_at_random import Data, Drawn, Tree, blocks_of, steps_of, verb_of

Thunk = Callable[[], object]
Sites = Callable[[Drawn], Iterator[Thunk]]
"""Every place of a workflow in which a change can be made: calling one makes it."""


def varied(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return type(value)(value + 1) if isinstance(value, Data) else value + 1
    if isinstance(value, str):
        whole = re.fullmatch(r"\$\{\{ (.*) \}\}", value)
        return "${{ [" + whole[1] + "] }}" if whole else value + "x"
    if isinstance(value, list):
        return [*value, value[-1] if value else 1]
    return {**value, "more": 1} if isinstance(value, dict) else 0


def put(around: Any, key: Any, value: Any) -> Thunk:
    """Sets a key."""
    return lambda: around.__setitem__(key, value)


def swapped(items: list[Any]) -> Iterator[Thunk]:
    """Two neighbours that differ change places."""
    for at in range(len(items) - 1):
        if items[at] != items[at + 1]:
            yield lambda at=at: items.__setitem__(slice(at, at + 2), [items[at + 1], items[at]])  # type: ignore[misc]


def top(path: str, change: Callable[[Any], Any] = varied) -> Sites:
    """Changes a value of the file; `*` stands for every key or index."""

    def sites(drawn: Drawn) -> Iterator[Thunk]:
        yield from _at(drawn.tree, path.split("."), change)

    return sites


def common(path: str, change: Callable[[Any], Any] = varied) -> Sites:
    """Changes a common key of a step, or what is in it."""

    def sites(drawn: Drawn) -> Iterator[Thunk]:
        for step in steps_of(drawn.tree):
            yield from _at(step, path.split("."), change)

    return sites


def setting(path: str, change: Callable[[Any], Any] = varied) -> Sites:
    """Changes a setting of a verb: `shell.run`."""
    verb, *inside = path.split(".")

    def sites(drawn: Drawn) -> Iterator[Thunk]:
        for step in steps_of(drawn.tree):
            if verb_of(step) == verb:
                yield from _at(step[verb], inside, change)

    return sites


def given(verb: str, key: str, value: Any) -> Sites:
    """Gives a setting to a verb that has none, by `defaults` either."""

    def sites(drawn: Drawn) -> Iterator[Thunk]:
        for step in steps_of(drawn.tree):
            if verb in (verb_of(step), "step"):
                around = step if verb == "step" else step[verb]
                if key not in around and key not in drawn.tree.get("defaults", {}).get(verb, {}):
                    yield put(around, key, value)

    return sites


def taken(path: str) -> Sites:
    """Takes a common key away."""

    def sites(drawn: Drawn) -> Iterator[Thunk]:
        for step in steps_of(drawn.tree):
            if path in step:
                yield lambda step=step: step.pop(path)  # type: ignore[misc]

    return sites


def beside(ending: str, change: Callable[[Any], Any]) -> Sites:
    """Changes a file beside it."""

    def sites(drawn: Drawn) -> Iterator[Thunk]:
        for name, found in drawn.beside.items():
            if name.endswith(ending):
                yield put(drawn.beside, name, change(found))

    return sites


def _at(around: Any, path: list[str], change: Callable[[Any], Any]) -> Iterator[Thunk]:
    if not isinstance(around, dict | list):
        return
    first, *rest = path
    keys = list(around) if isinstance(around, dict) else list(range(len(around)))
    for key in keys if first == "*" else [first] if first in keys else []:
        if rest:
            yield from _at(around[key], rest, change)
        else:
            yield put(around, key, change(around[key]))


def _blocks(drawn: Drawn) -> Iterator[list[Tree]]:
    yield from (drawn.tree[key] for key in ("steps", "finally") if key in drawn.tree)
    for step in steps_of(drawn.tree):
        yield from blocks_of(step)


def _order_of_steps(drawn: Drawn) -> Iterator[Thunk]:
    for block in _blocks(drawn):
        yield from swapped(block)


def _step_more(drawn: Drawn) -> Iterator[Thunk]:
    for block in _blocks(drawn):
        yield lambda block=block: block.append({"id": "more", "local": {"value": 1}})  # type: ignore[misc]


def _step_less(drawn: Drawn) -> Iterator[Thunk]:
    for block in _blocks(drawn):
        if len(block) > 1:
            yield lambda block=block: block.pop()  # type: ignore[misc]


def _renamed(drawn: Drawn) -> Iterator[Thunk]:
    for step in steps_of(drawn.tree):
        text = re.sub(rf"\b{step['id']}\b", "other", json.dumps(drawn.tree))
        yield lambda text=text: drawn.tree.update(json.loads(text))  # type: ignore[misc]


def _another_verb(drawn: Drawn) -> Iterator[Thunk]:
    for step in steps_of(drawn.tree):
        verb = verb_of(step)
        if verb in ("local", "shell") and not {"verify", "retry"} & set(step):
            other = {"local": ("shell", {"run": "make"}), "shell": ("local", {"value": "make"})}[verb]
            yield lambda step=step, verb=verb, other=other: (step.pop(verb), step.update([other]))  # type: ignore[misc]


def _ordered(*paths: str) -> Sites:
    """Two neighbours of a list change places: `shell.argv`."""

    def sites(drawn: Drawn) -> Iterator[Thunk]:
        for step in steps_of(drawn.tree):
            for path in paths:
                found: Any = step
                for key in path.split("."):
                    found = found.get(key) if isinstance(found, dict) else None
                if isinstance(found, list):
                    yield from swapped(found)

    return sites


def _preset(drawn: Drawn) -> Iterator[Thunk]:
    """A default changes where a step lives by it."""
    for verb, key in (("shell", "kill_after"), ("ai", "temperature"), ("http", "headers")):
        found = drawn.tree.get("defaults", {}).get(verb, {})
        if key in found and any(verb_of(step) == verb and key not in step[verb] for step in steps_of(drawn.tree)):
            yield put(found, key, {"kill_after": "7s", "temperature": 0.75, "headers": {"A": "b"}}[key])


def _permitted(drawn: Drawn) -> Iterator[Thunk]:
    if "permits" not in drawn.tree:
        permits = {"shell": ["bash", "git"], "http": ["api.example.com"]}
        yield put(drawn.tree, "permits", permits)


def _time(old: str) -> str:
    return "7m" if old != "7m" else "8m"


def _renamed_key(old: Any) -> Any:
    """The first key has another name."""
    (first, value), *rest = old.items()
    return {first + "x": value, **dict(rest)}


CHANGES: dict[str, Sites] = {
    "the name": top("name"),
    "the default of an input": top("inputs.count.default", lambda old: Data(old % 5 + 1)),
    "the limits of an input": top("inputs.count.minimum", lambda old: old - 1),
    "the type of an input": top("inputs.count.type", lambda old: "number"),
    "the source of a secret": top("secrets.TOKEN", lambda old: {"env": "OTHER"}),
    "the environment": top("env.REGION"),
    "the name of a variable": top("env", _renamed_key),
    "a limit": top("limits.max_step_executions"),
    "the time of a run": top("limits.timeout", _time),
    "what a run may cost": top("limits.max_cost_usd"),
    "what is permitted": top("permits.shell"),
    "that something is permitted": _permitted,
    "a group of runs": top("concurrency.group"),
    "how many of a group": top("concurrency.limit"),
    "what a late run does": top("concurrency.on_conflict", lambda old: "queue"),
    "a cron": top("schedules.*.cron", lambda old: "5 5 * * *"),
    "a time zone": top("schedules.*.timezone", lambda old: "Asia/Tokyo"),
    "the catching up": top("schedules.*.catchup", lambda old: "all"),
    "the first value of state": top("state.total.initial"),
    "a reduce": top("state.total.reduce", lambda old: "last"),
    "a default of a verb": _preset,
    "an output": top("outputs.no"),
    "the name of an output": top("outputs", _renamed_key),
    "the last catch": top("catch.*.output"),
    "a step of the end": top("finally.*.timeout", _time),
    "a step more": _step_more,
    "a step less": _step_less,
    "the order of steps": _order_of_steps,
    "the name of a step": _renamed,
    "a verb": _another_verb,
    "a condition": common("when", lambda old: "${{ false or inputs.flag }}"),
    "a condition more": given("step", "when", "${{ inputs.flag }}"),
    "a condition less": taken("when"),
    "the attempts": common("retry.max_attempts"),
    "a pause": common("retry.delay", _time),
    "a backoff": common("retry.backoff"),
    "what is tried again": common("retry.on", lambda old: ["auth"]),
    "when it is tried again": common("retry.when", lambda old: "${{ error.attempt < 2 }}"),
    "a timeout": common("timeout", _time),
    "a timeout less": taken("timeout"),
    "a deadline": common("deadline", _time),
    "what is caught": common("catch.*.on", lambda old: ["auth"]),
    "what a catch gives": common("catch.*.output"),
    "the order of clauses": _ordered("catch"),
    "a catch more": given("step", "catch", [{"output": 1}]),
    "the output": common("output"),
    "the schema": common("schema", lambda old: {"type": "object"}),
    "what is saved": common("save.total"),
    "the replay policy": common("replay", lambda old: "idempotent" if old == "replayable" else "replayable"),
    "what is asked of a lost attempt": common("verify", lambda old: "${{ attempt.number > 2 }}"),
    "a value": setting("local.value"),
    "the type of a value": setting("local.value", lambda old: json.dumps(old)),
    "an argument of a function": setting("local.with.x"),
    "a script": setting("shell.run"),
    "white space at the end of a script": setting("shell.run", lambda old: old + " "),
    "an argument": setting("shell.argv"),
    "the order of arguments": _ordered("shell.argv"),
    "a variable of a child": setting("shell.env.A"),
    "a folder": setting("shell.cwd"),
    "what a child reads": setting("shell.stdin"),
    "how output is read": setting("shell.parse", lambda old: "lines" if old != "lines" else "text"),
    "exit statuses": setting("shell.ok_exit_codes"),
    "how much is kept": setting("shell.max_output", lambda old: "3MiB"),
    "the time to end": setting("shell.kill_after", _time),
    "what is handed over in a file": setting("shell.files.CONFIG"),
    "a limit of memory": setting("shell.resources.memory", lambda old: "3GiB"),
    "a sandbox": setting("shell.sandbox", lambda old: {"network": True} if old is True else True),
    "an address": setting("http.get"),
    "a parameter": setting("http.query.q"),
    "the order of parameters": _ordered("http.query.q"),
    "a header": setting("http.headers.Accept"),
    "a body": setting("http.json"),
    "what status is good": setting("http.expect_status", lambda old: [418]),
    "who asks": setting("http.auth", lambda old: {"basic": ["you", "${{ secrets.TOKEN }}"]}),
    "a part of a body": setting("http.multipart.title"),
    "a file in a body": setting("http.multipart.doc.file"),
    "the order of parts": _ordered("http.multipart.tags"),
    "where a body goes": setting("http.save_to"),
    "how long a download may be": setting("http.max_download", lambda old: "3MiB"),
    "how many pages there may be": setting("http.paginate.max_pages"),
    "what is on a page": setting("http.paginate.items", lambda old: "${{ result.body.items }}"),
    "a key against doing it twice": setting("http.idempotency_key", lambda old: "order-2"),
    "a proxy": setting("http.proxy", lambda old: "http://api.example.com:8080"),
    "which authorities count": setting("http.ca_bundle"),
    "a certificate of our own": setting("http.client_cert.cert"),
    "a model": setting("ai.model"),
    "a prompt": setting("ai.prompt"),
    "the text of a prompt file": beside(".md", varied),
    "instructions": setting("ai.system"),
    "the shape of an answer": setting("ai.schema", lambda old: {"type": "object"}),
    "a temperature": setting("ai.temperature"),
    "how often it is asked": setting("ai.reask"),
    "what a model may use": setting("ai.tools", lambda old: [{**old[0], "tools": ["*"]}]),
    "how often it may use it": setting("ai.max_tool_calls", lambda old: old + 1),
    "what is taken out": setting("ai.guard.patterns", lambda old: [*old, "wire money"]),
    "whether an agent is guarded": given("codex", "guard", True),
    "a tool": setting("mcp.tool"),
    "what a tool is given": setting("mcp.arguments.zone"),
    "the program of a server": setting("mcp.server.command"),
    "the address of a server": setting("mcp.server.url"),
    "another package's title": setting("plugin.with.title"),
    "another package's number": setting("plugin.with.copies", lambda old: 3),
    "another package's pause": setting("plugin.with.pause", _time),
    "another package's words": setting("plugin.with.labels", lambda old: ["a"]),
    "a policy": setting("gate.check", lambda old: "${{ inputs.count >= 2 }}"),
    "a reason": setting("gate.reason"),
    "a question": setting("gate.ask"),
    "what is shown": setting("gate.show"),
    "a form": setting("gate.form.required", lambda old: []),
    "who decides": setting("gate.approvers", lambda old: [*old, "mary"]),
    "how many decide": setting("gate.min", lambda old: 3 - old),
    "what silence means": setting("gate.on_timeout", lambda old: "approve"),
    "how often it is done again": setting("gate.on_reject.max"),
    "a case": setting("branch.cases.low", lambda old: [] if old else [{"id": "zz9", "local": {"value": "x"}}]),
    "what no case is for": given("branch", "default", []),
    "the other way": given("branch", "else", []),
    "a branch's name": setting("parallel.branches", _renamed_key),
    "the items": setting("parallel.items"),
    "the order of items": _ordered("parallel.items", "foreach.items"),
    "how many at once": setting("parallel.max"),
    "that one failure ends all": given("parallel", "fail_fast", True),
    "that failures are collected": given("foreach", "on_error", "collect"),
    "what an item is called by": given("foreach", "key", "${{ loop.index }}"),
    "the most turns": setting("repeat.max"),
    "when it is enough": setting("repeat.until", lambda old: "${{ loop.index >= 3 }}"),
    "the pause of a loop": setting("repeat.delay", _time),
    "a delay": setting("delay.for", lambda old: "7m"),
    "an instant": setting("delay.until", lambda old: "2031-01-31T08:00:00Z"),
    "what a called workflow is given": setting("call.with.n"),
    "what a called workflow does": beside(".yaml", lambda old: {**old, "outputs": {"new": 1}}),
    "a secret that is passed": given("call", "secrets", {"S": "TOKEN"}),
}
