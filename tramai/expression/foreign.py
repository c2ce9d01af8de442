"""What other languages write, and how it is written here: hints for expressions that cannot be read."""

from __future__ import annotations

import re

_TOKENS = (
    (r"`", "a text stands in quotes; put texts together with ~"),
    (r"[“”„«»]|[‘’‚]", "write straight quotes: \" or '"),
    (r"=>|->", 'there are no functions: use `| map(attribute=…)`, `| selectattr(…)` or `| map("filter")`'),
    (r"<>", "write !="),
    (r"=~|!~", "there are no regular expressions; see the tests like, startswith, endswith and in"),
    (r"\?\.", "a dot is enough: what is missing is handled by `| default(…)`"),
    (r"\?\?", "write `x | default(y)`"),
    (r"\bfor\b", "there are no comprehensions: use `| map(attribute=…)` and `| selectattr(…)`"),
    (r"\blambda\b", "there are no functions: use `| map(attribute=…)` and `| selectattr(…)`"),
    (r"\$\{\{", "one ${{ … }} is enough: inside it, names stand alone"),
    (r"\$\(", "a command runs in a `shell` step"),
    (r"[+-]=|\+\+|--", "expressions change nothing: write state by `save`"),
)
_CALLS = {
    **dict.fromkeys(("success", "succeeded"), "a step runs only while those before it succeed: leave it out"),
    **dict.fromkeys(
        ("always", "failure", "failed", "cancelled", "canceled"), "what runs in any case stands in `finally`"
    ),
    "contains": "write `part in whole`",
    "includes": "write `part in whole`",
    "startsWith": "write `x is startswith(…)`",
    "endsWith": "write `x is endswith(…)`",
    **dict.fromkeys(("toJSON", "toJson", "to_json", "dumps", "stringify"), "write `x | tojson`"),
    **dict.fromkeys(("fromJSON", "fromJson", "from_json", "loads", "parse"), "write `x | fromjson`"),
    **dict.fromkeys(("size", "count", "len", "length"), "write `x | length`"),
    **dict.fromkeys(("now", "today", "utcnow", "date", "time"), "there is no clock here; a run has run.started_at"),
    **dict.fromkeys(("uuid", "random", "rand", "uuid4"), "there is no chance here; a run has run.id"),
    **dict.fromkeys(("env", "getenv"), "declare it under `env` and read env.NAME"),
    **dict.fromkeys(("toLowerCase", "to_lower"), "write `x | lower`"),
    **dict.fromkeys(("toUpperCase", "to_upper"), "write `x | upper`"),
    **dict.fromkeys(("strip", "trim"), "write `x | trim`"),
    **dict.fromkeys(("range", "seq"), "write the list itself, or let a step make it"),
    **dict.fromkeys(("isEmpty", "empty", "is_empty"), "write `x | length == 0`"),
    **dict.fromkeys(("push", "append", "concat"), "write `list + [item]`"),
    **dict.fromkeys(("isinstance", "typeof", "type"), "write `x is string`, `x is number`, `x is mapping` …"),
    "exists": "write `x is defined`",
    "has": "write `x is defined`",
    "coalesce": "write `x | default(y)`",
    "split": 'write `x | split(",")`',
    "join": 'write `x | join(",")`',
    "filter": 'write `x | selectattr("key", "==", value)`',
    "secret": "declare it under `secrets` and read secrets.NAME",
    "secrets": "declare it under `secrets` and read secrets.NAME",
    "print": "an expression has a value: leave `print` out",
}
_FILTERS = {
    **dict.fromkeys(("null", "nil"), "write `none`"),
    "empty": "write `x | length == 0`",
    **dict.fromkeys(("match", "search", "regex", "regex_search", "regex_match", "regex_findall"), _TOKENS[4][1]),
    **dict.fromkeys(("to_json", "toJSON", "json", "toJson", "dump"), "write `| tojson`"),
    **dict.fromkeys(("from_json", "fromJSON", "fromJson", "parse_json"), "write `| fromjson`"),
    **dict.fromkeys(("bool_", "boolean"), "write `| bool`"),
    **dict.fromkeys(("number", "integer"), "write `| int` or `| float`"),
    **dict.fromkeys(("size", "len"), "write `| length`"),
    **dict.fromkeys(("shellescape", "shell_escape", "sh"), "write `| quote`; better, give the value by `env`"),
    **dict.fromkeys(("to_yaml", "yaml"), "write `| tojson`: JSON is YAML, too"),
    "nl2br": "there is no HTML here",
    "contains": "write `part in whole`",
    "in_": "write `x in y`",
    "exists": "write `is defined`",
    "undef": "write `is undefined`",
    "dict": "write `is mapping`",
    "str": "write `is string`, or `| string`",
    "int_": "write `is integer`",
    "array": "write `is list`",
    "object": "write `is mapping`",
}
_RUN = "what is known of a run is run.id, run.workflow, run.attempt …"
_STEP = "the output of a step is steps.<id>.output"
_GIVEN = "what a run is given is inputs.<name>"
_ITEM = "the item of a loop is known inside it, under the name that `as` gives"


def _all(words: str, hint: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), hint)


NAMES = {
    **_all("null nil undefined NULL Null NONE nothing", "write none"),
    **_all("TRUE Yes yes", "write true"),
    **_all("FALSE No no", "write false"),
    **_all("github workflow flow job execution context ctx", _RUN),
    **_all("needs tasks nodes outputs results jobs", _STEP),
    **_all("params parameters args arguments vars variables event trigger", _GIVEN),
    **_all("matrix item each this it", _ITEM),
    **_all("credentials", "a secret is secrets.<NAME>"),
    **_all("environ environment ENV", "a variable that the file declares is env.<NAME>"),
    **_all("now today date timestamp", "there is no clock here; a run has run.started_at"),
    **_all("stdout stderr exit_code body status output", "say of which step: steps.<id>.output"),
    "loop": "`loop` is known only inside a loop",
    "index": "the number of an item is loop.index, from 1",
    "self": "a step's own record is `result`, in its `output` and `save`",
}
"""Names of other tools, and what is read instead."""


def of_token(text: str, start: int, end: int) -> str | None:
    """A hint for what stands around a place at which reading stopped."""
    for pattern, hint in _TOKENS:
        if any(found.start() < end and found.end() > start for found in re.finditer(pattern, text)):
            return hint
    if start and text[start] in "'\"" and text[start - 1 : start] in ("f", "r", "b"):
        return "a text has no letter in front: put texts together with ~"
    return None


def of_call(name: str, *, method: bool) -> str | None:
    """A hint for a function or method that is called."""
    return None if method and name in ("date", "time", "count") else _CALLS.get(name)


def of_filter(name: str) -> str | None:
    """A hint for a filter or test that is not there."""
    return _FILTERS.get(name)
