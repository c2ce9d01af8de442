"""Any valid workflow at all, for properties: every verb with every key, each in a file or in several.

`workflows()` draws a `Drawn`: the plain tree of a workflow in its long form, and what lies beside it (called
workflows as trees, prompts as texts). `tests/spellings.py` writes it down in any formatting.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

Tree = dict[str, Any]


class Text(str):
    """A text where the language wants text: `NO` and `1.10` may stand there without quotes."""

    __slots__ = ()


class Data(int):
    """A whole number in untyped data: `3` may stand there as `3.0`."""


@dataclass
class Drawn:
    """A workflow as a tree, and the files beside it: called workflows as trees, prompts as texts."""

    tree: Tree
    beside: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> Drawn:
        """The same, to be changed."""
        return Drawn(copy.deepcopy(self.tree), copy.deepcopy(self.beside))


AWKWARD = [
    "", " ", "no", "NO", "true", "null", "~", "1.10", "010", "0x1f", "+12", "22:30:00", "2024-01-15", "1_000", ".inf",
    "a: b", "a #b", "# a", "- a", "-", "? a", "*a", "&a", "!t", "%a", "@a", "`a`", "|", ">", "'", '"', "it's", '"q"',
    "\\", "\\n", "{a}", "[a]", "a, b", "{{.ID}}", "${#a[@]}", "$${{ kept }}", "é ✓", " lead", "trail ", "tab\there",
    "one\ntwo", "one\ntwo\n", "one\n\n  two\n", "\nfirst", "end\n\n", "  deep\nflat\n", "plain", "several plain words",
    "a rather long line of plain words that an author might well want to fold somewhere", "---", "...", "<<", "1e3",
]  # fmt: skip
TEXTS = ["NO", "1.10", "010", "22:30:00", "2024-01-15", "true", "0x1f", "plain", "a b", "12"]
SCRIPTS = ["make", "make test", "echo one\n\necho two\n", 'set -u\nprintf "%s" "$A" | wc -l\n', "test -d . || exit 3"]
PROMPTS = [
    "How risky is it?",
    "Look at ${{ inputs.text }}.\n{% for tag in inputs.tags %}\n- ${{ tag }}\n{% endfor %}\n",
]
DURATIONS = ["30s", "90s", "5m", "2h", "1d"]
ERRORS = ["timeout", "network", "exit", "exit.3", "http.5xx", "invalid_output"]
SHAPE: Tree = {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}
CONDITIONS = [
    "${{ true }}", "${{ inputs.flag }}", "${{ inputs.count > 3 }}", '${{ inputs.level == "low" and not inputs.flag }}',
    '${{ run.workflow != "" }}', "${{ state.total >= 0 }}",
]  # fmt: skip
VALUES = [
    "${{ inputs.count }}", "${{ inputs.tags }}", "${{ inputs.text | upper }}", "${{ state.log }}", "${{ inputs.flag }}",
    "${{ {'a': [1, 2.5, none, inputs.count]} }}",
]  # fmt: skip
INLINE = ["at ${{ inputs.level }}", "${{ inputs.text }}", "${{ run.id }}/${{ inputs.count }}: done"]

KEYS = ["a", "b c", "no", "1", "é:"]
NUMBERS = [True, False, None, 0.5, -2.25, 1e-7, 123456.789, Data(0), Data(-7), Data(2**53 + 1), Data(10**15)]


Below = Callable[[int], int]
"""Draws a number below another."""


class Writer:
    """Draws one workflow file."""

    def __init__(self, below: Below, *, beside: dict[str, Any], prefix: str = "s") -> None:
        self._below = below
        self.beside = beside
        self._prefix = prefix
        self._count = 0
        self._seen: list[str] = []
        """Steps that may be read here."""
        self._closing = False
        self._verbs = LEAVES if prefix == "s" else ALONE

    # Small draws.

    def pick(self, among: list[Any]) -> Any:
        return among[self._below(len(among))] if len(among) > 1 else among[0]

    def odds(self, of: int) -> bool:
        return bool(self._below(of) == of - 1)

    def some(self, among: list[Any]) -> list[Any]:
        """One to three of them, each once."""
        start, count = self._below(len(among)), self._below(min(3, len(among))) + 1
        return [*among, *among][start : start + count]

    def optional(self, made: Tree, odds: int = 3, **keys: Callable[[], Any]) -> Tree:
        """Adds each key now and then."""
        for key, draw in keys.items():
            if self.odds(odds):
                made[key.rstrip("_").replace("__", "-")] = draw()
        return made

    def value(self) -> Any:
        """Data with expressions in it."""
        if self._seen and self.odds(3):
            return "${{ steps." + self.pick(self._seen) + ".output }}"
        found = self._data(2)
        return "~" if found is None else found  # null is no value of a key

    def _data(self, depth: int) -> Any:
        kind = self._below(6 if depth else 4)
        if kind < 4:
            return self.pick([AWKWARD, AWKWARD, NUMBERS, [*VALUES, *INLINE]][kind])
        inside = [self._data(depth - 1) for _ in range(self._below(4))]
        return inside if kind == 4 else dict(zip(KEYS, inside, strict=False))

    def text(self) -> str:
        """A text with expressions in it."""
        if self._seen and self.odds(4):
            return "it ${{ steps." + self.pick(self._seen) + ".status }}"
        return Text(self.pick([*TEXTS, *INLINE, *[text for text in AWKWARD if text.strip()]]))

    def condition(self) -> str:
        if self._seen and self.odds(3):
            return "${{ steps." + self.pick(self._seen) + '.status == "succeeded" }}'
        return str(self.pick(CONDITIONS))

    def duration(self) -> str:
        return str(self.pick(DURATIONS))

    def names(self) -> Tree:
        return {key: self.text() for key in self.some(["A", "B_1", "no", "LANG"])}

    # Blocks and steps.

    def block(self, depth: int, most: int = 2) -> list[Tree]:
        before = list(self._seen)
        made = [self.step(depth) for _ in range(self._below(most) + 1)]
        self._seen = before
        return made

    def step(self, depth: int) -> Tree:
        self._count += 1
        made: Tree = {"id": f"{self._prefix}{self._count}"}
        verb = self.pick([*self._verbs, *(CONTAINERS if depth > 0 and self._count < 9 else [])])
        made[verb] = getattr(self, f"_{verb}")(depth)
        self._common(made, verb, depth)
        if "when" not in made and "output" not in made:
            self._seen = [*self._seen, made["id"]]
        return made

    def _common(self, made: Tree, verb: str, depth: int) -> None:
        self.optional(made, 6, when=self.condition)
        if verb in ("local", "shell", "http", "ai", "mcp"):
            self.optional(made, 5, retry=self._retry, timeout=self.duration, deadline=self.duration)
            self.optional(made, 8, replay=lambda: self.pick(["replayable", "idempotent", "non_replayable"]))
            if verb != "ai":
                self.optional(
                    made, 8, schema=lambda: {"type": ["object", "array", "string", "number", "boolean", "null"]}
                )
        if verb == "shell" and "replay" not in made and self.odds(5):
            made["verify"] = self._verify()
        elif self.odds(5):
            made["save"] = {key: 1 if key == "total" else self.value() for key in self.some(["log", "total"])}
        if verb != "delay":
            self.optional(made, 6, catch=lambda: self._catch(depth))
        if verb in ("local", "shell", "gate") and self.odds(6):
            made["output"] = self.pick(["${{ result }}", {"it": "${{ result }}", "n": Data(1)}])

    def _retry(self) -> Tree:
        made: Tree = {"max_attempts": self.pick([2, 3])}
        keys = {"delay": self.duration, "max_delay": lambda: "1d", "on": lambda: self.some(ERRORS)}
        when = lambda: "${{ error.attempt < 3 }}"  # noqa: E731 - one of several draws
        return self.optional(made, 2, **keys, backoff=lambda: self.pick([1.5, 2]), jitter=lambda: 0.25, when=when)

    def _verify(self) -> Any:
        if self.odds(2):
            return "${{ attempt.number > 1 }}"
        asked: Tree = {"shell": {"run": "git ls-remote"}, "replay": "replayable", "timeout": self.duration()}
        return {**asked, "output": '${{ result.stdout != "" }}'}

    def _catch(self, depth: int) -> list[Tree]:
        clauses = []
        for _ in range(self.pick([1, 1, 2])):
            clause = self.optional({}, 2, on=lambda: self.some(ERRORS), output=self.value)
            self.optional(clause, 4, when=lambda: "${{ error.attempt > 1 }}", do=lambda: self.block(0, 1))
            clauses.append(clause if {"do", "output"} & set(clause) else {**clause, "output": "caught"})
        first, last = clauses[:-1], clauses[-1]
        # A clause without `on` and `when` takes all: what comes after it would never be reached.
        return [*({"on": ["network"], **clause} for clause in first), last]

    # Verbs.

    def _local(self, depth: int) -> Tree:
        if self.odds(6):
            return self.optional({"call": "checks.style:score"}, 2, with_=lambda: {"x": self.value()})
        return {"value": self.value()}

    def _shell(self, depth: int) -> Tree:
        made: Tree = {"run": self.pick(SCRIPTS)}
        if self.odds(3):
            made = {"argv": [Text("git"), *(self.text() for _ in range(self._below(3)))]}
            self.optional(made, 4, allow=lambda: ["git", "make"], deny=lambda: ["rm"])
        stdin = lambda: self.pick([*VALUES, "some text\n"])  # noqa: E731
        self.optional(made, 3, env=self.names, stdin=stdin, cwd=lambda: "build")
        self.optional(made, 5, files=lambda: {"CONFIG": self.value()}, resources=self._resources)
        sandboxes = [True, {"network": True}, {"write": [], "read": ["~/.cache"]}, {"hide": [Text(".env")]}]
        self.optional(made, 5, sandbox=lambda: self.pick(sandboxes))
        parse = lambda: self.pick(["text", "json", "jsonl", "lines"])  # noqa: E731
        codes = lambda: self.pick([[0, 1], [3]])  # noqa: E731
        return self.optional(
            made, 4, parse=parse, ok_exit_codes=codes, kill_after=self.duration, max_output=lambda: "2MiB"
        )

    def _resources(self) -> Tree:
        cpu, files = lambda: self.pick(["30s", "1m"]), lambda: 64
        sizes = lambda: self.pick(["512MiB", 1_000_000_000])  # noqa: E731
        return self.optional({"memory": "1GiB"}, 3, cpu=cpu, open_files=files, file_size=sizes)

    def _http(self, depth: int) -> Tree:
        method = self.pick(["get", "head", "post", "put", "patch", "delete"])
        made: Tree = {method: self.pick(["https://api.example.com/v1", "https://api.example.com/${{ inputs.count }}"])}
        query = lambda: {"q": [self.text(), Text("b")], "state": Text("open")}  # noqa: E731
        self.optional(made, 3, query=query, headers=lambda: {"Accept": Text("a/b"), "X-No": self.text()})
        if method in ("post", "put", "patch") and self.odds(2):
            body = self.pick(["multipart", "json", "form", "body", "body_file", "multipart"])
            draws = {"json": self.value, "form": self.names, "body": self.text, "multipart": self._parts}
            made[body] = draws[body]() if body in draws else "build/report.pdf"
            self.optional(made, 3, idempotency_key=lambda: self.pick([True, Text("order-1")]))
        bearer = {"bearer": "${{ secrets.TOKEN }}"}
        self.optional(made, 4, auth=lambda: self.pick([bearer, {"basic": ["me", "${{ secrets.TOKEN }}"]}]))
        status = lambda: self.pick([[200, 404], "3xx", ["2xx", 304], 201])  # noqa: E731
        self.optional(made, 5, expect_status=status, max_response=lambda: 4096, allow_private=lambda: True)
        if self.odds(6):
            made |= {"follow_redirects": True, "allow_hosts": ["api.example.com"]}
        if method == "get":
            pages = {"next": "${{ result.links.next }}", "items": "${{ result.body }}", "max_pages": 7}
            saved = {"save_to": "out/data.bin", "max_download": "2MiB"}
            made |= self.pick([{"paginate": pages}, saved, {"paginate": pages}, {}])
        certificate = {"cert": "client.pem", "key": "client.key", "password": "${{ secrets.TOKEN }}"}
        self.optional(made, 6, ca_bundle=lambda: "ca.pem", client_cert=lambda: dict(certificate))
        if self.odds(8):
            made |= {"proxy": "http://api.example.com:3128", "proxy_auth": ["me", "${{ secrets.TOKEN }}"]}
        return made

    def _parts(self) -> Tree:
        file: Tree = self.optional({"file": "build/a.bin"}, 2, name=self.text, type=lambda: "application/pdf")
        return {"title": self.text(), "tags": [self.text(), Text("b")], "doc": file, "meta": {"text": Text("1.10")}}

    def _ai(self, depth: int) -> Tree:
        made: Tree = {"model": "demo:echo"}
        if self.odds(3):
            name = f"prompt_{self.pick([1, 2])}.md"
            self.beside.setdefault(name, self.pick(PROMPTS))
            made["prompt_file"] = name
        else:
            made["prompt"] = self.pick(PROMPTS)
        self.optional(made, 3, system=lambda: "Be brief.", schema=lambda: copy.deepcopy(SHAPE), reask=lambda: 1)
        self.optional(
            made,
            3,
            tools=lambda: [{"mcp": {"command": ["uvx", "time"]}, "tools": ["get_current_time"], "prefix": "t_"}],
        )
        if "tools" in made:
            self.optional(made, 2, max_tool_calls=lambda: 3)
        self.optional(made, 4, guard=lambda: {"patterns": ["act as root"], "system": Text("Be polite.")})
        return self.optional(made, 4, temperature=lambda: 0.5, max_output_tokens=lambda: 800)

    def _codex(self, depth: int) -> Tree:
        made: Tree = {"prompt": self.pick(PROMPTS)}
        self.optional(made, 3, env=self.names, model=lambda: "gpt-5-codex", schema=lambda: copy.deepcopy(SHAPE))
        if self.odds(3):
            made |= {"sandbox": "workspace-write", "cwd": "out"}
        return self.optional(made, 4, max_output=lambda: "2MiB", guard=lambda: True)

    _claude = _hermes = _codex

    def _mcp(self, depth: int) -> Tree:
        server: Tree = {"command": ["uvx", "mcp-server-time"]}
        if self.odds(2):
            server = self.optional({"url": "https://api.example.com/mcp"}, 2, headers=lambda: {"X-No": self.text()})
        else:
            self.optional(server, 2, env=self.names)
        if self.odds(4):
            return {"server": server, "list": True}
        made: Tree = {"server": server, "tool": "get_time"}
        return self.optional(made, 2, arguments=lambda: {"zone": self.value()}, max_response=lambda: 4096)

    def _plugin(self, depth: int) -> Tree:
        made: Tree = {"title": self.text(), "board": self.optional({"file": "a.jsonl"}, 2, column=lambda: "doing")}
        self.optional(made, 2, body=lambda: self.pick(PROMPTS), copies=lambda: 2, pause=self.duration)
        self.optional(made, 3, labels=lambda: [Text("1.10"), Text("no")], unless=self.condition)
        return {"use": "ticket", "with": self.optional(made, 2, fields=lambda: {"x": self.value()})}

    def _gate(self, depth: int) -> Tree:
        if self.odds(2):
            return self.optional({"check": self.condition()}, 2, reason=self.text)
        made: Tree = {"ask": self.text()}
        form = lambda: {"properties": {"ticket": {"type": "string"}}, "required": ["ticket"]}  # noqa: E731
        self.optional(made, 2, show=self.value, form=form)
        if self.odds(2):
            made |= {"approvers": ["ada", "grace"], "min": self.pick([1, 2])}
        if self._seen and not self._closing and self.odds(4):
            made["on_reject"] = {"redo": self.pick(self._seen), "max": 2}
        if self.odds(2):
            made |= {"timeout": self.duration(), "on_timeout": self.pick(["fail", "reject"])}
        return made

    def _delay(self, depth: int) -> Tree:
        return self.pick([{"for": "5m"}, {"for": "90s"}, {"until": "2030-01-31T08:00:00Z"}])  # type: ignore[no-any-return]

    def _call(self, depth: int) -> Tree:
        name = f"called_{self.pick([1, 2])}.yaml"
        if name not in self.beside:
            self.beside[name] = called(self._below, name[7])
        made: Tree = {"workflow": name}
        return self.optional(made, 2, with_=lambda: {"n": Data(4)}, secrets=lambda: {"S": "TOKEN"})

    def _branch(self, depth: int) -> Tree:
        empty = lambda: [] if self.odds(4) else self.block(depth - 1)  # noqa: E731
        if self.odds(2):
            return self.optional({"if": self.condition(), "then": empty()}, 2, else_=empty)
        cases = {"low": empty(), "high": empty()}
        return self.optional({"select": "${{ inputs.level }}", "cases": cases}, 2, default=empty)

    def _parallel(self, depth: int) -> Tree:
        if self.odds(2):
            made = self.optional(self._each(depth), 3, max=lambda: 2)
        else:
            made = {"branches": {"one": self.block(depth - 1), "no": self.block(depth - 1)}}
        return self.optional(made, 4, fail_fast=lambda: True, on_error=lambda: "collect")

    def _foreach(self, depth: int) -> Tree:
        return self.optional(self._each(depth), 4, on_error=lambda: "collect")

    def _each(self, depth: int) -> Tree:
        items = self.pick(["${{ inputs.tags }}", [Data(1), Data(2)], ["a", "no"], ["${{ inputs.count }}", Data(7)]])
        made: Tree = {"items": items, "as": f"it{self._count}"}
        self.optional(made, 3, key=lambda: "${{ it" + str(self._count) + " }}")
        return {**made, "do": self.block(depth - 1)}

    def _repeat(self, depth: int) -> Tree:
        made: Tree = {"max": self.pick([2, 3]), "do": self.block(depth - 1)}
        return self.optional(made, 2, until=lambda: "${{ loop.index >= 2 }}", delay=self.duration)

    # The whole file.

    def file(self, most: int) -> Tree:
        made: Tree = {"tramai": 1, "name": self.pick(["demo", "no", "1.10", "a: b"]), "inputs": self._inputs()}
        made["secrets"] = {"TOKEN": self.pick([{"env": "TOKEN"}, {"file": "token"}])}
        made["state"] = {
            "log": {"initial": self.pick([[], [Data(1)], ["no"]]), "reduce": "append"},
            "total": {"initial": Data(self.pick([0, 1])), "reduce": "sum"},
        }
        made["steps"] = [self.step(2) for _ in range(self._below(most) + 1)]
        self.optional(made, 3, env=lambda: {"REGION": self.pick(["eu", "${{ inputs.level }}"])}, limits=self._limits)
        self.optional(made, 3, permits=self._permits, schedules=self._schedules, defaults=self._defaults)
        group = {"group": self.pick(["deploy", "deploy-${{ inputs.level }}"])}
        conflict = lambda: self.pick(["skip", "fail", "cancel_running"])  # noqa: E731
        self.optional(made, 4, concurrency=lambda: self.optional(group, 2, limit=lambda: 2, on_conflict=conflict))
        if self.odds(3):
            made["outputs"] = {"seen": self.pick(VALUES), "no": Data(1)}
        self._seen, self._closing = [], True
        self.optional(made, 3, catch=lambda: self._catch(0), finally_=lambda: self.block(0))
        return self.optional(made, 3, version=lambda: Text("1.10"))

    def _inputs(self) -> Tree:
        made: Tree = {"text": {"type": "string", "pattern": r"^[\w.-]+$"}, "level": {"type": "string"}}
        made["level"] |= {"enum": [Text("low"), Text("high")], "default": Text("low")}
        made["count"] = self.optional({"type": "integer", "default": Data(3)}, 2, minimum=lambda: 1, maximum=lambda: 9)
        made["flag"] = {"type": "boolean", "default": self.pick([True, False])}
        made["tags"] = {"type": "array", "items": {"type": "string"}, "default": self.pick([[], ["a", "no"]])}
        more = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"], "optional": True}
        return self.optional(
            made, 4, more=lambda: more, day=lambda: {"type": "string", "format": "date", "optional": True}
        )

    def _limits(self) -> Tree:
        made = {"max_step_executions": 50, "timeout": self.duration()}
        keys = {"max_parallel_branches": lambda: 4, "max_tokens": lambda: 9000, "max_cost_usd": lambda: 2.5}
        return self.optional(made, 2, **keys, max_value=lambda: "1MiB", max_state=lambda: 1048576)

    def _permits(self) -> Tree:
        return {
            "shell": ["bash", "git", "codex", "claude", "hermes"],
            "http": self.pick([["api.example.com"], ["*.example.com"]]),
            "mcp": ["uvx", "api.example.com"],
            "write": ["out"],
        }

    def _schedules(self) -> list[Tree]:
        made = {"cron": self.pick(["30 4 * * 1-5", "0 12 * * *"]), "timezone": self.pick(["Europe/Berlin", "UTC"])}
        made["inputs"] = {"text": "abc"}
        keys = {"catchup_window": self.duration, "overlap": lambda: "queue"}
        return [self.optional({**made, "catchup": "last"}, 2, **keys)]

    def _defaults(self) -> Tree:
        made: Tree = {}
        shell = {"timeout": self.duration(), "kill_after": "5m", "env": {"LC_ALL": Text("C")}}
        ask = {"retry": {"max_attempts": 3, "on": ["rate_limited"]}, "temperature": 0.25}
        self.optional(made, 2, shell=lambda: shell, ai=lambda: ask, foreach=lambda: {"on_error": "collect"})
        return made or {"http": {"timeout": "30s", "headers": {"Accept": Text("a/c")}}}


ALONE = ["local", "shell", "gate"]
"""What called workflows do: they have no secret and no file of their own."""
LEAVES = ["local", "shell", "http", "ai", "codex", "claude", "hermes", "mcp", "plugin", "gate", "delay", "call"]
CONTAINERS = ["branch", "parallel", "foreach", "repeat"]


def called(below: Below, number: str) -> Tree:
    """A small workflow that others call; its steps have names of their own."""
    writer = Writer(below, beside={}, prefix=f"c{number}_")
    steps = [writer.step(0) for _ in range(below(2) + 1)]
    made: Tree = {"tramai": 1, "name": f"called{number}", "inputs": writer._inputs(), "steps": steps}
    made["inputs"]["text"] |= {"default": "abc"}
    made["inputs"]["n"] = {"type": "integer", "default": Data(1)}
    made["state"] = {"log": {"initial": [], "reduce": "append"}, "total": {"initial": 0, "reduce": "sum"}}
    made["secrets"] = {"S": {"env": "S"}}
    return made


@st.composite
def workflows(draw: st.DrawFn, most: int = 5) -> Drawn:
    """A valid workflow of up to `most` steps at the top, and the files beside it."""
    return at_random(lambda count: draw(_numbers(count)), most)


@cache
def _numbers(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


def at_random(below: Below, most: int = 5) -> Drawn:
    """The same with chance of another kind: `at_random(random.Random(1).randrange)`."""
    beside: dict[str, Any] = {}
    return Drawn(Writer(below, beside=beside).file(most), beside)


def steps_of(tree: Tree) -> Iterator[Tree]:
    """Every step of a workflow, those inside others and in `catch` and `finally` included."""
    for block in (tree["steps"], *_clauses(tree), tree.get("finally", [])):
        for step in block:
            yield from _within(step)


def verb_of(step: Tree) -> str:
    """The verb of a step."""
    return next(name for name in step if name in (*LEAVES, *CONTAINERS))


def blocks_of(step: Tree) -> Iterator[list[Tree]]:
    """The blocks that stand directly in a step."""
    verb = verb_of(step)
    settings = step[verb] if isinstance(step[verb], dict) and verb in CONTAINERS else {}
    for key in ("do", "default", "then", "else"):
        if isinstance(settings.get(key), list):
            yield settings[key]
    for key in ("cases", "branches"):
        yield from settings.get(key, {}).values()
    yield from _clauses(step)


def _clauses(around: Tree) -> Iterator[list[Tree]]:
    yield from (clause["do"] for clause in around.get("catch", []) if "do" in clause)


def _within(step: Tree) -> Iterator[Tree]:
    yield step
    for block in blocks_of(step):
        for inner in block:
            yield from _within(inner)
