import json
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest

from tramai import schema as schemas
from tramai._quick import fits
from tramai.document import parse
from tramai.duration import Duration
from tramai.schema import resolve, schema_problems, validate

Meta = msgspec.Meta
DURATION = {"type": "string", "title": "duration", "pattern": r"^(\d+(ms|[smhdw]))+$", "examples": ["90s"]}


class Again(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often.

    A second paragraph is for those who read the code.
    """

    max_attempts: Annotated[int, Meta(ge=1, description="All attempts.")] = 3
    delay: Duration = Duration(1)


class Shell(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Run a child process."""

    run: Annotated[str, Meta(description="The script.", examples=["make test"], extra_json_schema={"x-also": ["cmd"]})]
    env: dict[str, str] = {}
    codes: tuple[Annotated[int, Meta(ge=0)], ...] = (0,)
    parse: Literal["text", "json"] | None = None
    quiet: bool = False
    ratio: float | None = None


class Http(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}):
    """One request."""

    get: str | None = None
    json: Any = None
    expect: int | Annotated[str, Meta(pattern="^[1-5]xx$")] = 200
    basic: tuple[str, str] | None = None
    from_: str | msgspec.UnsetType = msgspec.UNSET


class Delay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"for_": "for"}):
    """Wait."""

    for_: Duration


class Common(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$", description="Lower-case letters, digits, `_`.")]
    timeout: Duration | None = None
    retry: Annotated[Again | None, Meta(description="What happens when an attempt fails.")] = None
    schema: dict[str, Any] | None = None
    save: dict[str, Any] = {}


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    type: str | None = None
    default: Any = msgspec.UNSET
    enum: list[Any] | None = None


def hook(kind):
    assert kind is Duration
    return DURATION


def whole():
    references, definitions = schemas.components([Shell, Http, Delay, Spec, Common], hook)
    shell, http, delay, spec, _ = references
    common = definitions.pop("Common")["properties"]
    verbs = {"shell": (shell, {"type": "string"}), "http": (http, None), "delay": (delay, DURATION)}
    definitions["step"] = schemas.step_schema(verbs, common, definitions=definitions)
    definitions["Spec"] = schemas.free(definitions["Spec"])
    properties = {
        "$schema": {"type": "string"},
        "name": {"type": "string", "minLength": 1},
        "version": {"type": "string"},
        "inputs": {"type": "object", "additionalProperties": spec},
        "steps": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/step"}},
        "data": {},
        "count": {"type": "integer"},
        "price": {"type": "number"},
        "on": {"type": "boolean"},
    }
    return schemas.free(
        {
            "$schema": schemas.DIALECT,
            "type": "object",
            "properties": properties,
            "required": ["name", "steps"],
            "additionalProperties": False,
            "definitions": definitions,
        }
    )


SCHEMA = whole()
STEPS = "name: x\nsteps:\n"
GOOD = STEPS + "  - {id: a, shell: x}\n"


def problems(text, file="w.yaml"):
    document = parse(text, file=file)
    resolved = resolve(document, SCHEMA)
    found = (*document.problems, *resolved.problems)
    return (*found, *validate(resolved.data, SCHEMA, document, known=found))


def only(text, file="w.yaml"):
    (problem,) = problems(text, file)
    return problem


def step(*lines):
    return STEPS + "  - " + "\n    ".join(lines) + "\n"


def place(problem):
    return problem.position.line, problem.position.column


def data(text, schema=SCHEMA, file="w.yaml"):
    return resolve(parse(text, file=file), schema).data


# Generating


def test_a_generated_schema_is_valid_in_both_drafts():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    instance = {"name": "x", "steps": [{"id": "a", "shell": "make", "x-note": 1}], "x-y": 2}
    for draft in (jsonschema.Draft7Validator, jsonschema.Draft202012Validator):
        assert draft(SCHEMA).is_valid(instance)
        assert not draft(SCHEMA).is_valid({**instance, "steps": [{"id": "a"}]})
        assert not draft(SCHEMA).is_valid({**instance, "steps": [{"id": "a", "shell": "x", "http": {}}]})


def test_no_reference_has_a_sibling_that_editors_would_ignore():
    def walk(schema):
        if isinstance(schema, dict):
            assert "$ref" not in schema or len(schema) == 1 or isinstance(schema["$ref"], dict)
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    walk(SCHEMA)


def test_descriptions_examples_defaults_and_bounds_are_in_the_schema():
    made = SCHEMA["definitions"]
    assert made["Again"]["description"] == "How often."
    assert made["Again"]["properties"]["max_attempts"] == {
        "type": "integer",
        "minimum": 1,
        "description": "All attempts.",
        "default": 3,
    }
    assert made["Again"]["properties"]["delay"]["default"] == "1s"
    assert made["Shell"]["properties"]["run"]["examples"] == ["make test"]
    assert made["Shell"]["required"] == ["run"]
    assert made["Http"]["properties"]["basic"] == {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 2,
        "maxItems": 2,
    }
    assert made["Http"]["properties"]["from"] == {"type": "string"}
    assert made["step"]["properties"]["http"]["description"] == "One request."
    assert made["step"]["properties"]["schema"] == {"$ref": "#/definitions/JsonSchema"}


def test_a_key_that_may_be_left_out_may_not_be_empty():
    assert SCHEMA["definitions"]["Shell"]["properties"]["parse"] == {"enum": ["json", "text"]}
    assert only(step("id: a", "shell: {run: x, parse: }")).message == "`shell.parse` of step `a` is empty"


def test_a_class_that_nobody_knows_is_refused():
    kind = msgspec.defstruct("Odd", [("what", complex)])
    with pytest.raises(TypeError, match="json_schema"):
        schemas.generate(kind)
    made = schemas.generate(kind, hook=lambda other: {"type": "number"})
    assert made["definitions"]["Odd"]["properties"] == {"what": {"type": "number"}}


def test_the_published_schema_is_read_once():
    assert schemas.workflow_schema() is schemas.workflow_schema()
    assert json.loads(schemas.schema_bytes()) == schemas.workflow_schema()


# Resolving


@pytest.mark.parametrize(
    "written",
    ["NO", "1.10", "010", "22:30:00", "2024-01-15", "2024-13-45", "true", "0x1f", "1e400", ".inf", "+12", "12"],
)
def test_where_text_is_wanted_a_plain_scalar_is_the_text_as_written(written):
    assert data(f"version: {written}\nname: x\n")["version"] == written
    assert data(step("id: a", f"shell: {{run: x, env: {{A: {written}}}}}"))["steps"][0]["shell"]["env"] == {
        "A": written
    }
    assert not problems(GOOD + f"version: {written}\n")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("false", False), ("null", None), ("~", None), ("", None), ("0", 0), ("-7", -7), ("2.5", 2.5),
        ("-0.5", -0.5), ("1e3", 1000.0), ("12345678901234567890", 12345678901234567890), ("no", "no"), ("on", "on"),
        ("2024-01-15", "2024-01-15"), ("2024-01-15T10:00:00Z", "2024-01-15T10:00:00Z"), ("12:30", "12:30"),
        ("1_000", "1_000"), ("1.2.3", "1.2.3"), ("0b1", "0b1"), ("'010'", "010"), ('"true"', "true"), ("a b", "a b"),
        ("-", "-") , ("1e", "1e"), (".5", 0.5), ("738529527931269425", 738529527931269425),
    ],
)  # fmt: skip
def test_untyped_data_is_what_it_looks_like(written, value):
    if written == "-":
        written = '"-"'
    found = data(f"data: {written}\n")["data"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "written",
    ["010", "-007", "00", "0x1f", "0o17", "+12", "+1.5", ".inf", "-.INF", ".nan", "1e400", "1e-400", "True", "NULL"],
)
def test_what_readers_disagree_about_is_refused_in_untyped_data(written):
    problem = only(GOOD + f"data: {{a: [{written}]}}\n")
    assert (problem.code, problem.path) == ("TRM119", "/data/a/0")
    assert f'"{written}"' in problem.hint
    assert place(problem) == (4, 12)


def test_a_number_that_loses_its_text_is_a_warning_in_untyped_data_only():
    problem = only(GOOD + "data: 1.10\n")
    assert (problem.code, problem.severity) == ("TRM121", "warning")
    assert not problems(GOOD + "price: 1.10\n")
    assert not problems(GOOD + "data: 2.5\n")


def test_a_doubtful_number_is_one_problem_where_a_number_is_wanted():
    assert only(GOOD + "count: 010\n").hint == 'quote it: "010", or write 10'


def test_a_number_stays_a_number_where_both_are_taken():
    text = step("id: a", "http: {expect: 204}")
    assert data(text)["steps"][0]["http"]["expect"] == 204
    assert data(text.replace("204", "2xx"))["steps"][0]["http"]["expect"] == "2xx"


def test_under_type_string_a_default_and_an_enum_are_text():
    inputs = "inputs: {a: {type: string, default: off, enum: [010, off]}, b: {default: 3}}\n"
    assert data(inputs)["inputs"] == {
        "a": {"type": "string", "default": "off", "enum": ["010", "off"]},
        "b": {"default": 3},
    }
    text = step("id: a", "shell: x", "schema: {properties: {zip: {type: string, enum: [01067]}}, required: [on]}")
    assert not problems(text)
    schema = data(text)["steps"][0]["schema"]
    assert schema == {"properties": {"zip": {"type": "string", "enum": ["01067"]}}, "required": ["on"]}


def test_free_keys_are_no_data_and_other_data_may_be_called_so():
    text = GOOD + "x-note: [1]\n$schema: ./s.json\ndata: {x-y: 1}\ninputs: {a: {x-z: 1}}\n"
    assert not problems(text)
    assert data(text) == {"name": "x", "steps": [{"id": "a", "shell": "x"}], "data": {"x-y": 1}, "inputs": {"a": {}}}


def test_yaml_and_toml_give_the_same_data():
    toml = (
        'name = "x"\nversion = "1.10"\ndata = {a = 1, b = [true, 2.5]}\n[[steps]]\nid = "a"\n[steps.shell]\nrun = "y"\n'
    )
    text = "name: x\nversion: 1.10\ndata: {a: 1, b: [true, 2.5]}\nsteps:\n  - id: a\n    shell: {run: y}\n"
    assert data(toml, file="w.toml") == data(text)


@pytest.mark.parametrize("value", ["3", "true", "2.5", "0x1f"])
def test_toml_must_quote_what_is_text(value):
    problem = only(f'name = {value}\n[[steps]]\nid = "a"\nshell = "x"\n', "w.toml")
    assert problem.code == "TRM106"
    assert problem.hint.startswith("quote it: ")
    assert place(problem) == (1, 8)


def test_an_offset_date_is_one_problem_in_toml():
    problem = only('name = 2024-01-15T10:00:00Z\n[[steps]]\nid = "a"\nshell = "x"\n', "w.toml")
    assert problem.code == "TRM119"
    assert not problems('name = 2024-01-15\n[[steps]]\nid = "a"\nshell = "x"\n', "w.toml")


# Explaining


def test_a_misspelt_verb_is_one_problem_with_its_mending():
    problem = only(step("id: build", "shel: ./build.sh"))
    assert (problem.code, problem.message) == ("TRM104", "unknown key `shel` in step `build`")
    assert problem.hint == "did you mean `shell`?"
    assert problem.fix == ({"op": "move", "from": "/steps/0/shel", "path": "/steps/0/shell"},)
    assert place(problem) == (4, 5)


def test_a_misspelt_key_explains_the_one_that_is_missing():
    problem = only(step("id: a", "shell: {rnu: x}"))
    assert (problem.code, problem.path, problem.hint) == ("TRM104", "/steps/0/shell/rnu", "did you mean `run`?")


def test_a_word_of_another_tool_is_known():
    assert only(step("id: a", "shell: {cmd: x}")).hint == "did you mean `run`?"
    assert only(step("id: a", "shell: x", "retries: 2")).hint == "write retry: {max_attempts: 3}"


def test_two_verbs_are_one_problem_with_both_places():
    problem = only(step("id: a", "shell: {rnu: x}", "http: {get: 1, bad: 2}"))
    assert (problem.code, problem.message) == ("TRM108", "step `a` has 2 verbs: `shell` and `http`")
    assert place(problem) == (5, 5)
    assert problem.related[0].position.line == 4


def test_an_unknown_verb_is_not_blamed_for_what_verbs_need():
    problem = only(step("id: a", "frobnicate: {x: 1}"))
    assert (problem.code, problem.hint) == ("TRM109", "verbs: shell, http, delay")
    assert only(step("id: a", "htpp: x")).hint == "did you mean `http`?"


def test_a_step_without_a_verb_is_marked_at_its_first_key():
    problem = only(step("id: a", "timeout: 3s"))
    assert (problem.code, problem.message, place(problem)) == ("TRM109", "step `a` has no verb", (3, 5))


def test_a_missing_key_is_marked_at_the_first_key_of_its_mapping():
    problem = only(STEPS + "  - shell: x\n")
    assert (problem.code, problem.message, place(problem)) == ("TRM105", "missing key `id` in `steps[0]`", (3, 5))
    assert only("name: x\n").message == "missing key `steps` at the top level"


def test_a_key_at_the_wrong_level_says_where_it_belongs():
    assert only(step("id: a", "shell:", "run: x")).hint == "`run` belongs to `shell`: indent it further"
    assert only(step("id: a", "shell: {run: x}", "env: {A: x}")).hint == "`env` belongs inside `shell`"
    assert only(step("id: a", "shell: {run: x, timeout: 3s}")).hint == "`timeout` belongs one level up, beside `shell`"


@pytest.mark.parametrize(
    ("lines", "code", "message", "hint"),
    [
        (
            ["shell: x", "retry: true"],
            "TRM106",
            "`retry` of step `a` must be a mapping, not true",
            "write `retry: {max",
        ),
        (["shell: x", "retry: {max_attempts: 3.5}"], "TRM106", "must be an integer, not 3.5", None),
        (["shell: x", "retry: {max_attempts: 3.0}"], "TRM106", "must be an integer, not 3.0", "write 3"),
        (["shell: x", 'retry: {max_attempts: "3"}'], "TRM106", 'not "3"', "write 3, without quotes"),
        (["shell: x", "retry: {max_attempts: true}"], "TRM106", "must be an integer, not true", None),
        (["shell: x", "retry: {max_attempts: 0}"], "TRM107", "must be at least 1", None),
        (["shell: x", "retry: "], "TRM106", "`retry` of step `a` is empty", "write a value, or remove the key"),
        (["shell: {run: x, quiet: yes}"], "TRM106", 'must be true or false, not "yes"', "write true"),
        (["shell: {run: x, quiet: Off}"], "TRM106", "must be true or false", "write false"),
        (["shell: {run: x, codes: 3}"], "TRM106", "must be a list, not 3", "write a list: [3]"),
        (["shell: {run: x, parse: jsn}"], "TRM107", "must be one of json, text", "did you mean `json`?"),
        (
            ["shell: [x]"],
            "TRM106",
            "must be text or a mapping, not a list",
            "write `shell: text`, or `shell: {run: …}`",
        ),
        (["http: x"], "TRM106", 'must be a mapping, not "x"', "write `http: {get: …}`"),
        (["http: {expect: 9xx}"], "TRM107", "does not have the right form", None),
        (["http: {expect: [1]}"], "TRM106", "must be an integer or text, not a list", None),
        (["delay: 30"], "TRM107", "`delay` of step `a` is no duration", "30 what? write 30s or 30m"),
        (["delay: -5s"], "TRM107", "is no duration", "a duration cannot be negative"),
        (["shell: x", "timeout: 5 minutes"], "TRM107", "is no duration", "write 5m"),
    ],
)
def test_one_mistake_is_one_problem_with_advice(lines, code, message, hint):
    problem = only(step("id: a", *lines))
    assert problem.code == code
    assert message in problem.message
    assert hint is None or problem.hint.startswith(hint)


def test_a_bare_duration_in_toml_is_asked_for_its_unit():
    problem = only('name = "x"\n[[steps]]\nid = "a"\ndelay = 30\n', "w.toml")
    assert problem.hint == "30 what? write 30s or 30m"


def test_a_mechanical_mending_is_a_json_patch():
    assert only(step("id: a", "shell: {run: x, quiet: yes}")).fix == (
        {"op": "replace", "path": "/steps/0/shell/quiet", "value": True},
    )
    assert only(GOOD + "data: 010\n").fix == ({"op": "replace", "path": "/data", "value": "010"},)


def test_independent_mistakes_are_all_reported_in_order_of_the_file():
    text = step("id: A", "shell: {rnu: x, env: {B: }}", "retry: {max_attempts: 0}") + "  - foo\nnmae: 1\n"
    found = [(problem.code, place(problem)[0]) for problem in problems(text.replace("name: x\n", ""))]
    assert found == [("TRM107", 2), ("TRM104", 3), ("TRM106", 3), ("TRM107", 4), ("TRM106", 5), ("TRM104", 6)]


def test_an_unquoted_expression_is_not_also_a_wrong_type():
    assert only(step("id: a", "shell: {run: {{ x }}}")).code == "TRM120"


def test_the_fast_way_and_the_explained_way_refuse_the_same():
    for text, valid in [("{max_attempts: 3}", True), ("{max_attempts: 3.0}", False), ("{max_attempts: true}", False)]:
        again = data(step("id: a", "shell: x", f"retry: {text}"))["steps"][0]["retry"]
        try:
            msgspec.convert(again, Again)
            converted = True
        except msgspec.ValidationError:
            converted = False
        assert converted is valid
        assert (not problems(step("id: a", "shell: x", f"retry: {text}"))) is valid


# Run-time data

RISK = {
    "type": "object",
    "required": ["risk"],
    "properties": {"risk": {"enum": ["low", "high"]}, "score": {"type": "integer", "minimum": 0}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"risk": "low"}, RISK, []),
        ({}, RISK, [((), "lacks the key `risk`")]),
        ({"risk": "mid"}, RISK, [(("risk",), 'must be one of low, high, not "mid"')]),
        ({"risk": "low", "score": "9"}, RISK, [(("score",), 'must be an integer, not "9"')]),
        ({"risk": "low", "score": True}, RISK, [(("score",), "must be an integer, not true")]),
        ({"risk": "low", "score": -1}, RISK, [(("score",), "must be at least 0")]),
        ({"risk": "low", "x": 1}, RISK, [((), "has the unknown key `x`")]),
        ("x", RISK, [((), 'must be a mapping, not "x"')]),
        (None, {"type": "string"}, [((), "is empty")]),
        ([1, "a"], {"items": {"type": ["integer", "null"]}}, [((1,), 'must be an integer or null, not "a"')]),
        ("abc", {"pattern": "^b"}, [((), 'does not have the right form: "abc"')]),
        (3, {"anyOf": [{"type": "string"}, {"type": "array"}]}, [((), "must be text or a list, not 3")]),
        (3, {"not": {}}, [((), "is a value that is not allowed here")]),
        (3, True, []),
        (3, False, [((), "is not allowed here")]),
        ({}, {}, []),
    ],
)
def test_run_time_data_is_explained_in_words(value, schema, expected):
    assert schema_problems(value, schema) == expected


def test_secrets_are_not_quoted():
    assert schema_problems("hunter2", {"enum": ["a", "b"]}, show=False) == [((), "is not an allowed value")]
    assert schema_problems("hunter2", {"type": "integer"}, show=False) == [((), "must be an integer")]
    assert "hunter2" not in str(schema_problems("hunter2", {"pattern": "^x$", "maxLength": 3}, show=False))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "https://example.com/s.json"},
        {"$ref": "#/nowhere"},
        {"type": "nonsense"},
        {"pattern": "("},
    ],
)
def test_a_schema_that_cannot_be_used_is_said_to_be_so(schema):
    (problem,) = schema_problems({"a": 1} if "pattern" not in schema else "x", schema)
    assert "cannot be checked" in problem[1] or "must be" in problem[1]


def test_the_fast_answer_never_says_yes_where_jsonschema_says_no():
    values = [None, True, 0, 1, -1, 1.0, 1.5, "", "a", "abc", [], [1], ["a"], {}, {"a": 1}, {"a": "x"}, {"b": None}]
    parts = [
        {}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": ["string", "null"]}, {"not": {}},
        {"enum": [1, "a"]},
        {"const": True}, {"minimum": 1}, {"maximum": 0}, {"minLength": 2}, {"maxLength": 1}, {"pattern": "b"},
        {"items": {"type": "integer"}}, {"minItems": 1}, {"maxItems": 0}, {"required": ["a"]},
        {"properties": {"a": {"type": "string"}}}, {"additionalProperties": False},
        {"additionalProperties": {"type": "null"}},
        {"properties": {"a": True}, "additionalProperties": False}, {"uniqueItems": True},
    ]  # fmt: skip
    for value in values:
        for part in parts:
            if fits(value, part):
                assert jsonschema.Draft202012Validator(part).is_valid(value), (value, part)
