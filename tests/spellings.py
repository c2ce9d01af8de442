"""Writes a workflow down in any way that means the same: order, style, quotes, comments, line ends, YAML or TOML."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from tests.workflows_at_random import Data, Drawn, Text, Tree, steps_of, verb_of
from tramai import schema

DURATION_KEYS = {"timeout", "deadline", "delay", "max_delay", "kill_after", "catchup_window"}
"""Not `for`: it may hold expressions, so it counts as it is written. So do sizes."""
SAME_TIME = {
    "30s": ["30s", "30000ms", "PT30S", "0m30s"],
    "90s": ["90s", "1m30s", "PT90S", "PT1M30S"],
    "5m": ["5m", "300s", "PT5M"],
    "2h": ["2h", "120m", "PT2H"],
    "1d": ["1d", "24h", "P1D", "PT24H"],
}
SCALARS = {"local": "value", "shell": "run", "gate": "check", "delay": "for", "call": "workflow"}
PRESET = ("timeout", "deadline", "retry")
Replays = Mapping[str, str]
"""The replay policy of each leaf step by id."""


def files(drawn: Drawn, chance: random.Random, replays: Replays | None = None) -> dict[str, bytes]:
    """Every file of a workflow, the workflow first, each in a formatting of its own."""
    made: dict[str, bytes] = {}
    forms = ["yaml", "yaml", "json", "toml"] if _has_toml(drawn.tree) else ["yaml", "yaml", "json"]
    form = chance.choice(forms)
    tree = respelled(drawn.copy().tree, chance, replays or {})
    text = _toml(tree, chance) if form == "toml" else _yaml(tree, chance, form)
    made["main.toml" if form == "toml" else "main.yaml"] = _ended(text, chance)
    for name, found in drawn.copy().beside.items():
        if isinstance(found, str):
            made[name] = _ended(found, chance)
        else:
            made[name] = _ended(_yaml(respelled(found, chance, {}), chance, chance.choice(["yaml", "json"])), chance)
    return made


def plain(drawn: Drawn) -> dict[str, bytes]:
    """Every file as it was drawn, in JSON."""
    made = {"main.yaml": json.dumps(drawn.tree).encode()}
    for name, found in drawn.beside.items():
        made[name] = (found if isinstance(found, str) else json.dumps(found)).encode()
    return made


# Another tree of the same meaning.


def respelled(tree: Tree, chance: random.Random, replays: Replays) -> Tree:
    """Short or long forms, defaults written out or not, notes and descriptions, other words for a duration."""
    steps = list(steps_of(tree))
    if "defaults" in tree and chance.random() < 0.5:
        _push_down(tree.pop("defaults"), steps)
    properties = schema.workflow_schema()["definitions"]
    for step in steps:
        _respell(step, chance, replays, properties, tree.get("defaults", {}))
    if chance.random() < 0.3:
        _write_out(tree.setdefault("limits", {}), properties["Limits"], chance)
    for schedule in tree.get("schedules", []):
        _write_out(schedule, properties["Schedule"], chance)
    for about in (tree, *tree["inputs"].values()):
        _annotate(about, chance)
    if chance.random() < 0.3:
        tree["$schema"] = "https://example.org/workflow.schema.json"
    if chance.random() < 0.3:
        tree.setdefault("version", "1")
    return _durations(tree, chance)


def _push_down(defaults: Tree, steps: list[Tree]) -> None:
    for step in steps:
        verb = verb_of(step)
        for key, value in defaults.get(verb, {}).items():
            (step if key in PRESET else step[verb]).setdefault(key, value)


def _respell(step: Tree, chance: random.Random, replays: Replays, properties: Tree, defaults: Tree) -> None:
    verb = verb_of(step)
    _write_out(step[verb], properties[verb.capitalize()], chance, but=defaults.get(verb, ()))
    if isinstance(step.get("retry"), dict):
        _write_out(step["retry"], properties["Retry"], chance)
    if step["id"] in replays and chance.random() < 0.3:
        step.setdefault("replay", replays[step["id"]])
    _annotate(step, chance)
    if chance.random() < 0.2:
        step[verb]["x-note"] = chance.choice(["n", 1, None, ["a"]])
    field = SCALARS.get(verb)
    if field is not None and set(step[verb]) == {field} and chance.random() < 0.5:
        value = step[verb][field]
        if not isinstance(value, dict | list):
            step[verb] = value


def _write_out(settings: Tree, written: Tree, chance: random.Random, but: Container[str] = ()) -> None:
    """Adds keys with the defaults that the schema names, but those that are preset."""
    for key, found in written["properties"].items():
        if found.get("default") is not None and not (key in settings or key in but) and chance.random() < 0.25:
            settings[key] = found["default"]


def _annotate(about: Tree, chance: random.Random) -> None:
    if chance.random() < 0.25:
        about["description"] = chance.choice(["for people", "a: b # c", "no"])
    if chance.random() < 0.2:
        about["x-owner"] = chance.choice(["me", {"team": ["a", "b"]}, 3])


def _durations(tree: Any, chance: random.Random, key: str = "") -> Any:
    if isinstance(tree, dict):
        for name, value in tree.items():
            short = name == "delay" and "id" in tree  # the verb
            tree[name] = _durations(value, chance, "for" if short else name)
    elif isinstance(tree, list):
        tree[:] = [_durations(item, chance) for item in tree]
    elif key in DURATION_KEYS and tree in SAME_TIME:
        return chance.choice(SAME_TIME[tree])
    return tree


# YAML.

WORDS = ["a comment", "- not: a list", "'quoted\" # twice", "${{ steps.none.output }}", "é ✓", ""]
MEANS_SOMETHING = re.compile(r"(~|null|true|false|[-+.]?[0-9].*|[-+]?\.(inf|nan)|---|\.\.\.)$", re.I)
FORBIDDEN_FIRST = set("-?:,[]{}#&*!|>'\"%@`<=.")


def _yaml(tree: Tree, chance: random.Random, form: str) -> str:
    if form == "json":
        return json.dumps(
            _shuffled(tree, chance), ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 1, 2, 4])
        )
    lines = list(_Yaml(chance).mapping(tree, chance.choice([0, 0, 0, 2])))
    if chance.random() < 0.3:
        lines.insert(0, chance.choice(["---", "--- # start", "# yaml-language-server: $schema=x.json"]))
    text = "\n".join(lines)
    # The last line of a block is a line only with its end.
    return text if chance.random() < 0.2 and not set("|>") & set(text) else text + "\n"


def _shuffled(tree: Any, chance: random.Random) -> Any:
    if isinstance(tree, dict):
        keys = list(tree)
        chance.shuffle(keys)
        return {key: _shuffled(tree[key], chance) for key in keys}
    return [_shuffled(item, chance) for item in tree] if isinstance(tree, list) else tree


class _Yaml:
    """Lines of YAML, each choice left to chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.anchors: dict[str, str] = {}
        self.flow_odds = chance.choice([0.1, 0.4, 0.8])
        self.noise = chance.choice([0.0, 0.1, 0.4])

    def odds(self, share: float) -> bool:
        return self.chance.random() < share

    def between(self, indent: int) -> Iterator[str]:
        """Blank lines and comments before a key or an item."""
        if self.odds(self.noise):
            yield self.chance.choice(["", " " * indent, " " * indent + f"# {self.chance.choice(WORDS)}"])

    def beside(self) -> str:
        return f" {' ' * self.chance.randint(0, 3)}# {self.chance.choice(WORDS)}" if self.odds(self.noise / 2) else ""

    def mapping(self, tree: Tree, indent: int) -> Iterator[str]:
        keys = list(tree)
        self.chance.shuffle(keys)
        for key in keys:
            yield from self.between(indent)
            space = " " if self.odds(0.05) else ""
            yield from self.attached(f"{' ' * indent}{self.key(key)}{space}:", tree[key], indent)

    def sequence(self, items: list[Any], indent: int) -> Iterator[str]:
        for item in items:
            yield from self.between(indent)
            gap = " " * self.chance.choice([1, 1, 1, 3])
            head = f"{' ' * indent}-"
            if isinstance(item, dict) and item and not self.odds(self.flow_odds / 2):
                first, *rest = (
                    self.mapping(item, len(head + gap)) if not self.noise else self.bare(item, len(head + gap))
                )
                yield head + gap + first.lstrip(" ")
                yield from rest
            else:
                yield from self.attached(head, item, indent)

    def bare(self, item: Tree, indent: int) -> list[str]:
        """A mapping whose first line is a key."""
        lines = list(self.mapping(item, indent))
        while not lines[0].strip() or lines[0].lstrip().startswith("#"):
            lines.pop(0)
        return lines

    def attached(self, head: str, value: Any, indent: int) -> Iterator[str]:
        """A value after `key:` or `-`."""
        if isinstance(value, dict | list) and value:
            alias, anchor = self.anchored(value)
            if alias:
                yield f"{head} *{alias}{self.beside()}"
                return
            if not self.odds(self.flow_odds):
                yield f"{head}{anchor}{self.beside()}"
                sequence = isinstance(value, list)
                zero = 0 if sequence and not head.endswith("-") else 1
                deeper = indent + self.chance.choice([zero, 2, 2, 2, 4, 1])
                yield from self.sequence(value, deeper) if sequence else self.mapping(value, deeper)
                return
            yield f"{head}{anchor} {self.flow(value, indent)}{self.beside()}"
            return
        if isinstance(value, dict | list):
            yield f"{head} {self.flow(value, indent)}{self.beside()}"
            return
        block = self.block(value, indent) if isinstance(value, str) else None
        if block is not None:
            mark, *lines = block
            yield f"{head} {mark}{self.beside()}"
            yield from lines
            return
        yield f"{head}{' ' * self.chance.choice([1, 1, 3])}{self.scalar(value, indent, flow=False)}{self.beside()}"

    def anchored(self, value: Any) -> tuple[str | None, str]:
        """The alias to write in its place, or the anchor to give it."""
        told = _marked(value)
        if told in self.anchors:
            return (self.anchors[told], "") if self.odds(0.5) else (None, "")
        if '"id"' in told or self.odds(0.7):  # a step stands only once
            return None, ""
        name = f"a{len(self.anchors)}"
        self.anchors[told] = name
        return None, f" &{name}"

    def flow(self, value: Any, indent: int) -> str:
        if isinstance(value, dict):
            keys = list(value)
            self.chance.shuffle(keys)
            pairs = [f"{self.key(key, flow=True)}: {self.flow(value[key], indent)}" for key in keys]
            return "{" + self.joined(pairs, indent) + "}"
        if isinstance(value, list):
            return "[" + self.joined([self.flow(item, indent) for item in value], indent) + "]"
        return self.scalar(value, indent, flow=True)

    def joined(self, parts: list[str], indent: int) -> str:
        space = self.chance.choice(["", " "])
        if parts and self.odds(0.15):
            lead = "\n" + " " * (indent + self.chance.randint(1, 6))
            note = f" # {self.chance.choice(WORDS)}" if self.odds(self.noise) else ""
            trailing = "," if self.odds(0.3) else ""
            return f"{lead}{f',{note}{lead}'.join(parts)}{trailing}{lead}"
        return f"{space}{', '.join(parts)}{space}" if parts else space

    def key(self, key: str, *, flow: bool = False) -> str:
        """Keys are text as written, whatever they look like."""
        simple = re.fullmatch(r"[\w$][\w.-]*( [\w.-]+)*", key) is not None
        return key if simple and not self.odds(0.1) else self.quoted(key)

    def scalar(self, value: Any, indent: int, *, flow: bool) -> str:
        if value is None:
            return self.chance.choice(["null", "~"])
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Data) and abs(value) < 10**15 and self.odds(0.2):
            return f"{int(value)}.0"
        if isinstance(value, int | float):
            return repr(value) if isinstance(value, float) else str(int(value))
        if _is_plain(value, flow) and self.odds(0.6):
            return str(value)
        return self.quoted(value, None if flow else indent)

    def quoted(self, text: str, indent: int | None = None) -> str:
        if text.isprintable() and self.odds(0.5):
            return "'" + text.replace("'", "''") + "'"
        made = json.dumps(text, ensure_ascii=self.odds(0.5))
        spaces = [found.start() for found in re.finditer(r"(?<=\w) (?=\w)", made)]
        if indent is not None and spaces and self.odds(0.3):
            at = self.chance.choice(spaces)
            made = f"{made[:at]}\n{' ' * (indent + self.chance.randint(1, 5))}{made[at + 1 :]}"
        return made

    def block(self, text: str, indent: int) -> list[str] | None:
        """A literal or folded block, where the text can be one."""
        if not text.strip() or "\t" in text or text.endswith("\n\n") or not self.odds(0.7):
            return None
        ending = "" if text.endswith("\n") else "-"
        content = text.removesuffix("\n").split("\n")
        if any(line and not line.strip() for line in content) or content[0] == "":
            return None
        if len(content) == 1:
            if self.odds(0.5) or text != text.strip() + "\n" * text.endswith("\n"):
                return None
            spaces = [found.start() for found in re.finditer(r"(?<=\S) (?=\S)", content[0])]
            if spaces and self.odds(0.7):
                at = self.chance.choice(spaces)
                content = [content[0][:at], content[0][at + 1 :]]
                return self.indented(">" + ending, content, indent)
        deep = self.chance.choice([1, 2, 2, 4])
        lead = content[0].startswith(" ")
        return self.indented(f"|{deep if lead else ''}{ending}", content, indent, deep)

    def indented(self, mark: str, content: list[str], indent: int, deep: int = 2) -> list[str]:
        return [mark, *(" " * (indent + deep) + line if line else "" for line in content)]


def _is_plain(text: str, flow: bool) -> bool:
    if not text or text != text.strip() or text[0] in FORBIDDEN_FIRST or not text.isprintable():
        return False
    if ": " in text or " #" in text or text.endswith(":") or (flow and set(text) & set(",[]{}:")):
        return False
    if isinstance(text, Text):
        return text not in ("null", "~") and text.lower() != "null"
    return MEANS_SOMETHING.match(text) is None


def _marked(value: Any) -> str:
    """A text that is equal for equal values of the same kinds."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_marked(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_marked, value)) + "]"
    return f"{type(value).__name__} {value!r}"


# TOML.


def _has_toml(tree: Any) -> bool:
    """TOML has no null, and whole numbers of 64 bits."""
    if isinstance(tree, dict):
        return all(map(_has_toml, tree.values()))
    if isinstance(tree, list):
        return all(map(_has_toml, tree))
    return tree is not None and not (isinstance(tree, int) and abs(tree) >= 2**63)


def _toml(tree: Tree, chance: random.Random) -> str:
    lines: list[str] = []
    _table(_without_null(tree), [], lines, chance)
    return "\n".join([*lines, ""])


def _without_null(tree: Any) -> Any:
    """Notes may hold null, which TOML cannot say."""
    if isinstance(tree, dict):
        return {key: _without_null(value) for key, value in tree.items() if value is not None}
    return [_without_null(item) for item in tree] if isinstance(tree, list) else tree


def _table(tree: Tree, path: list[str], lines: list[str], chance: random.Random) -> None:
    """The keys of a table, then the tables in it."""
    keys = list(tree)
    chance.shuffle(keys)
    later = []
    for key in keys:
        value = tree[key]
        tables = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
        if (isinstance(value, dict) or tables) and chance.random() < 0.6:
            later.append(key)
            continue
        if chance.random() < 0.1:
            lines.append(chance.choice(["", "# a comment = [1]"]))
        dotted = isinstance(value, dict) and value and chance.random() < 0.4
        for name, inner in value.items() if dotted else [(None, value)]:
            head = _toml_key(key, chance) + (f".{_toml_key(name, chance)}" if name is not None else "")
            lines.append(f"{head} = {_toml_value(inner, chance, top=True)}{chance.choice(['', '', ' # c'])}")
    for key in later:
        below = [*path, _toml_key(key, chance)]
        name = ".".join(below)
        many = isinstance(tree[key], list)
        for inner in tree[key] if many else [tree[key]]:
            lines.append(f"[[{name}]]" if many else f"[{name}]")
            _table(inner, below, lines, chance)


def _toml_key(key: str, chance: random.Random) -> str:
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", key) is not None
    return key if bare and chance.random() < 0.8 else json.dumps(key)


def _toml_value(value: Any, chance: random.Random, *, top: bool = False) -> str:
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        pairs = (f"{_toml_key(key, chance)} = {_toml_value(value[key], chance)}" for key in keys)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        if top and value and chance.random() < 0.3:
            return "[\n" + ",\n".join(f"  {_toml_value(item, chance)}" for item in value) + ",  # last\n]"
        return "[" + ", ".join(_toml_value(item, chance) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        if isinstance(value, Data) and abs(value) < 10**15 and chance.random() < 0.2:
            return f"{int(value)}.0"
        return f"{int(value):_}" if chance.random() < 0.3 else str(int(value))
    return _toml_text(value, chance, top)


def _toml_text(text: str, chance: random.Random, top: bool) -> str:
    if "'" not in text and text.isprintable() and chance.random() < 0.5:
        return f"'{text}'"
    if top and "'''" not in text and not text.endswith("'") and "\t" not in text and chance.random() < 0.5:
        return f"'''\n{text}'''"
    if top and chance.random() < 0.5:
        escaped = "\n".join(json.dumps(line)[1:-1] for line in text.split("\n"))
        return f'"""\n{escaped}"""'
    return json.dumps(text, ensure_ascii=chance.random() < 0.5)


def _ended(text: str, chance: random.Random) -> bytes:
    """Line ends and a byte order mark."""
    kind = chance.choice(["lf", "lf", "crlf", "mixed"])
    if kind == "crlf":
        text = text.replace("\n", "\r\n")
    elif kind == "mixed":
        first, *rest = text.split("\n")
        text = first + "".join(chance.choice(["\n", "\r\n"]) + line for line in rest)
    return (b"\xef\xbb\xbf" if chance.random() < 0.2 else b"") + text.encode()
