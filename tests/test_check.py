"""Rules that a schema cannot say: what they allow, what they refuse, and that one mistake is said once."""

import pytest

from tramai import workflow

from .reading import HEAD, codes, examine, said, sound


def steps(*lines: str) -> str:
    return HEAD + "steps:\n" + "".join(f"  - {line}\n" for line in lines)


def branch(then: str, otherwise: str = "[]") -> str:
    return f"{{id: choice, branch: {{if: '${{{{ true }}}}', then: {then}, else: {otherwise}}}}}"


# Order and sight of steps.


def test_an_earlier_step_is_read_from_everywhere_after_it() -> None:
    sound(
        steps(
            "{id: a, local: 1}",
            "{id: b, when: '${{ steps.a.output == 1 }}', local: '${{ steps.a.output }}', save: {}}",
            branch("[{id: c, local: '${{ steps.a.output }}'}, {id: d, local: '${{ steps.c.output }}'}]"),
            "{id: all, parallel: {items: '${{ [steps.a.output] }}', do: [{id: e, local: '${{ steps.b.output }}'}]}}",
        )
        + "outputs: {x: '${{ steps.a.output }}', y: '${{ steps.all.output }}'}\n"
    )


@pytest.mark.parametrize(
    "use",
    [
        "steps.inner.output | default(0)",
        "steps.inner.status",
        "steps.inner.output.a.b | default(0)",
        "steps.inner.output if steps.inner.output is defined else 0",
    ],
)
def test_a_step_inside_a_branch_is_read_with_care(use: str) -> None:
    sound(steps(branch("[{id: inner, local: {value: {a: 1}}}]"), f"{{id: two, local: '${{{{ {use} }}}}'}}"))


@pytest.mark.parametrize("use", ["steps.inner.output", "steps.inner.output + 1", "steps.inner.attempts"])
def test_a_step_inside_a_branch_is_not_read_without(use: str) -> None:
    assert codes(steps(branch("[{id: inner, local: 1}]"), f"{{id: two, local: '${{{{ {use} }}}}'}}")) == ["TRM205"]


def test_the_outputs_of_the_workflow_see_branches_with_care_too() -> None:
    text = steps(branch("[{id: inner, local: 1}]"))
    assert codes(text + "outputs: {x: '${{ steps.inner.output }}'}\n") == ["TRM205"]
    sound(text + "outputs: {x: '${{ steps.inner.output | default(none) }}'}\n")


def test_a_branch_inside_a_loop_hides_its_steps_as_the_loop_does() -> None:
    inner = branch("[{id: deep, local: 1}]")
    text = steps(f"{{id: all, foreach: {{items: [1], do: [{inner}]}}}}", "{id: two, local: '${{ steps.deep.output }}'}")
    assert said(text) == ["TRM204 step `deep` is seen only inside `all`"]


def test_steps_of_one_item_see_each_other() -> None:
    sound(steps("{id: all, parallel: {items: [1], do: [{id: a, local: 1}, {id: b, local: '${{ steps.a.output }}'}]}}"))


def test_branches_that_run_side_by_side_do_not_see_each_other() -> None:
    text = steps(
        "{id: all, parallel: {branches: {x: [{id: a, local: 1}], y: [{id: b, local: '${{ steps.a.output }}'}]}}}"
    )
    assert said(text) == ["TRM204 step `a` is in another block of `all`"]


def test_a_container_is_not_read_from_inside() -> None:
    text = steps("{id: all, foreach: {items: [1], do: [{id: a, local: '${{ steps.all.output }}'}]}}")
    assert codes(text) == ["TRM204"]


@pytest.mark.parametrize("use", ["steps", "steps.a", "steps['a']", "steps[inputs.which].output"])
def test_a_step_is_read_by_its_id_and_part(use: str) -> None:
    text = steps("{id: a, local: 1}", f'{{id: b, local: "${{{{ {use} }}}}"}}')
    assert codes(text.replace("steps:\n", "inputs: {which: {type: string}}\nsteps:\n", 1)) == ["TRM202"]


@pytest.mark.parametrize("part", ["output", "status", "error", "attempts", "duration"])
def test_every_part_of_a_step_can_be_read(part: str) -> None:
    sound(steps("{id: a, local: 1}", f"{{id: b, local: '${{{{ steps.a.{part} }}}}'}}"))


# Names.


@pytest.mark.parametrize("name", ["id", "workflow", "version", "attempt", "started_at", "started_by"])
def test_every_part_of_a_run_can_be_read(name: str) -> None:
    sound(steps(f"{{id: a, local: '${{{{ run.{name} }}}}'}}"))


def test_sections_can_be_read_as_a_whole_but_secrets_cannot() -> None:
    head = HEAD + "inputs: {a: {default: 1}}\nstate: {s: {initial: 1}}\nenv: {E: x}\nsecrets: {T: {env: T}}\nsteps:\n"
    use = "{value: ['${{ inputs }}', '${{ state }}', '${{ env }}', '${{ run }}']}}\n"
    sound(head + f"  - {{id: a, local: {use}")
    assert codes(head + "  - {id: a, shell: {run: x, env: {A: '${{ secrets }}'}}}\n") == ["TRM208"]


def test_keys_with_dots_and_dashes_are_read_with_brackets() -> None:
    head = HEAD + "state: {a.b: {initial: 1}, c-d: {initial: 2}, items: {initial: 3}, é: {initial: 4}}\nsteps:\n"
    sound(head + """  - {id: a, local: '${{ [state["a.b"], state["c-d"], state.items, state["é"]] }}'}\n""")
    assert codes(head + """  - {id: a, local: '${{ state["a.c"] }}'}\n""") == ["TRM208"]


def test_a_dash_in_a_name_is_told_as_one_mistake_with_the_bracket_form() -> None:
    text = HEAD + "inputs: {max-size: {default: 1}}\nsteps:\n  - {id: a, local: '${{ inputs.max-size }}'}\n"
    found = examine(text)[1]
    assert len(found) == 1
    assert 'inputs["max-size"]' in (found[0].hint or "")


def test_names_that_a_template_binds_itself_are_known() -> None:
    sound(
        HEAD + "inputs: {files: {type: array, default: []}}\nsteps:\n  - id: a\n    ai:\n      model: demo:echo\n"
        "      prompt: |\n        {% for file in inputs.files %}${{ loop.index }} ${{ file }}{% endfor %}\n"
    )


def test_the_item_of_a_loop_and_loop_are_known_inside_and_in_its_key() -> None:
    sound(
        steps(
            "{id: all, parallel: {items: [1], as: pr, key: '${{ pr }}-${{ loop.index }}', "
            "do: [{id: a, local: '${{ [pr, loop.index, loop.index0, loop.length] }}'}]}}"
        ).replace("'${{ pr }}-${{ loop.index }}'", "'${{ pr ~ loop.index }}'")
    )


def test_the_item_of_a_loop_is_not_known_in_its_list() -> None:
    text = steps("{id: all, foreach: {items: '${{ pr }}', as: pr, do: [{id: a, local: 1}]}}")
    assert codes(text) == ["TRM210"]


def test_nested_loops_see_both_items() -> None:
    sound(
        steps(
            "{id: x, foreach: {items: [1], as: one, do: [{id: y, foreach: {items: '${{ [one] }}', as: two, "
            "do: [{id: z, local: '${{ one + two }}'}]}}]}}"
        )
    )


def test_result_is_known_in_output_and_save_only() -> None:
    head = HEAD + "state: {s: {initial: 0}}\nsteps:\n"
    sound(head + "  - {id: a, local: 1, output: '${{ result }}', save: {s: '${{ result }}'}}\n")
    assert codes(head + "  - {id: a, local: 1, when: '${{ result == 1 }}'}\n") == ["TRM210"]


def test_the_error_of_a_step_is_read_by_its_step() -> None:
    assert codes(steps("{id: a, local: '${{ error.message }}'}")) == ["TRM210"]


def test_an_undefined_input_lists_what_was_meant() -> None:
    text = HEAD + (
        "state: {dir: {initial: tmp}}\nsteps:\n"
        "  - {id: a, shell: {run: 'rm -rf \"/tmp/x/$DIR\"', env: {DIR: '${{ state.dirr }}'}}}\n"
    )
    found = examine(text)[1]
    assert [(problem.code, problem.hint) for problem in found] == [("TRM208", "did you mean `state.dir`?")]


# Conditions.


@pytest.mark.parametrize(
    "when",
    [
        '"false"',
        "no",
        '""',
        "0",
        "${{ false }} ",
        '"${{ true }} and more"',
        "\"${{ 'yes' }}\"",
        '"${{ 1 }}"',
        "|\n  false",
    ],
)
def test_no_condition_is_truthy(when: str) -> None:
    text = HEAD + f"steps:\n  - id: a\n    local: 1\n    when: {when}\n"
    if when == "${{ false }} ":
        sound(text)
    else:
        assert codes(text.replace("|\n  false", "|\n      false")) in (["TRM207"], ["TRM212"])


def test_white_space_around_a_condition_changes_nothing() -> None:
    sound(HEAD + "steps:\n  - id: a\n    local: 1\n    when: |\n      ${{ run.attempt == 1 }}\n")


# Secrets.


def secret(step: str) -> list[str]:
    return codes(HEAD + f"secrets: {{T: {{env: T}}}}\nenv: {{E: '${{{{ secrets.T }}}}'}}\nsteps:\n  - {step}\n")


@pytest.mark.parametrize("name", ["secrets.T", "env.E"])
@pytest.mark.parametrize(
    "step",
    [
        "{id: a, shell: {run: x, env: {A: 'x ${{ NAME }}'}}}",
        "{id: a, shell: {run: x, stdin: '${{ NAME }}'}}",
        "{id: a, http: {get: 'https://example.com/${{ NAME }}'}}",
        "{id: a, http: {get: 'https://example.com', query: {k: '${{ NAME }}'}}}",
        "{id: a, http: {get: 'https://example.com', headers: {k: '${{ NAME }}'}}}",
        "{id: a, http: {get: 'https://example.com', auth: {basic: [me, '${{ NAME }}']}}}",
        "{id: a, http: {post: 'https://example.com', json: {a: ['${{ NAME }}']}}}",
        "{id: a, http: {post: 'https://example.com', form: {a: '${{ NAME }}'}}}",
        "{id: a, http: {post: 'https://example.com', body: '${{ NAME }}'}}",
    ],
)
def test_a_secret_may_stand_in_the_sinks(step: str, name: str) -> None:
    assert secret(step.replace("NAME", name)) == []


@pytest.mark.parametrize("name", ["secrets.T", "env.E"])
@pytest.mark.parametrize(
    "step",
    [
        "{id: a, shell: {argv: [echo, '${{ NAME }}']}}",
        "{id: a, shell: {run: x, cwd: '${{ NAME }}'}}",
        "{id: a, local: '${{ NAME | length }}'}",
        "{id: a, local: {call: 'm:f', with: {x: '${{ NAME }}'}}}",
        "{id: a, local: 1, output: '${{ NAME }}'}",
        "{id: a, local: 1, when: '${{ NAME == result }}'}",
        "{id: a, gate: {check: '${{ true }}', reason: '${{ NAME }}'}}",
        "{id: a, ai: {model: 'demo:echo', prompt: '${{ NAME }}'}}",
        "{id: a, ai: {model: 'demo:echo', prompt: x, system: '${{ NAME }}'}}",
        "{id: a, foreach: {items: ['${{ NAME }}'], do: [{id: b, local: 1}]}}",
        "{id: a, branch: {select: '${{ NAME }}', cases: {x: []}, default: []}}",
        "{id: a, delay: '${{ NAME }}'}",
    ],
)
def test_a_secret_may_stand_nowhere_else(step: str, name: str) -> None:
    assert "TRM302" in secret(step.replace("NAME", name))


def test_env_of_the_workflow_is_a_sink_and_outputs_are_not() -> None:
    head = HEAD + "secrets: {T: {env: T}}\nsteps:\n  - {id: a, local: 1}\n"
    assert codes(head + "outputs: {x: '${{ secrets.T }}'}\n") == ["TRM302"]


# State.


def test_steps_one_after_another_may_save_one_key() -> None:
    sound(
        HEAD + "state: {n: {initial: 0}}\nsteps:\n"
        "  - {id: a, local: 1, save: {n: '${{ result }}'}}\n  - {id: b, local: 2, save: {n: '${{ result }}'}}\n"
        "  - {id: c, foreach: {items: [1], do: [{id: d, local: 1, save: {n: '${{ result }}'}}]}}\n"
        "  - {id: e, parallel: {branches: {x: [{id: f, local: 1, save: {n: 1}}], y: [{id: g, local: 1}]}}}\n"
    )


def test_writes_deep_inside_branches_are_seen() -> None:
    inner = branch("[{id: b, local: 1, save: {n: 1}}]")
    text = HEAD + (
        f"state: {{n: {{initial: 0}}}}\nsteps:\n  - id: all\n    parallel:\n      branches:\n        x: [{inner}]\n"
        "        y: [{id: c, local: 1, save: {n: 2}}, {id: d, local: 1, save: {n: 3}}]\n"
    )
    assert codes(text) == ["TRM303", "TRM303"]


# Schemas and inputs.


@pytest.mark.parametrize(
    "schema",
    [
        "{type: [string, 'null']}",
        "{type: array, items: {type: integer}, minItems: 1, uniqueItems: true}",
        "{$defs: {a: {type: string}}, $ref: '#/$defs/a'}",
        "{anyOf: [{type: string}, {const: 1}]}",
        "{type: object, additionalProperties: {type: number}, patternProperties: {'^a': true}}",
        "{type: string, x-note: mine}",
    ],
)
def test_a_json_schema_is_taken(schema: str) -> None:
    sound(steps(f"{{id: a, shell: {{run: x, parse: json}}, schema: {schema}}}"))


@pytest.mark.parametrize(
    "schema",
    [
        "{type: strnig}",
        "{type: []}",
        "{properties: {a: {type: 5}}}",
        "{type: string, pattern: '['}",
        "{minimum: low}",
        "{minLength: -1}",
        "{required: name}",
        "{enum: 5}",
        "{anyOf: []}",
        "{items: 5}",
        "{multipleOf: 0}",
        "{$ref: 'https://example.com/s.json'}",
        "{$ref: '#/$defs/none'}",
        "{patternProperties: {'[': true}}",
    ],
)
def test_what_is_no_json_schema_is_refused(schema: str) -> None:
    found = codes(steps(f"{{id: a, shell: {{run: x, parse: json}}, schema: {schema}}}"))
    assert len(found) == 1
    assert found[0] in {"TRM307", "TRM106", "TRM369"}


def test_fields_are_checked_only_where_the_schema_closes_them() -> None:
    def reading(schema: str, use: str) -> list[str]:
        return codes(
            steps(
                f"{{id: a, shell: {{run: x, parse: json}}, schema: {schema}}}", f"{{id: b, local: '${{{{ {use} }}}}'}}"
            )
        )

    declared = "{type: object, properties: {a: {type: object, properties: {b: {type: array}}}}}"
    assert reading(declared, "steps.a.output.a.b[0].c") == []
    assert reading(declared, "steps.a.output.a.c") == ["TRM209"]
    assert reading(declared, "steps.a.output.c | default(1)") == []
    assert reading("{type: object, properties: {a: {}}, additionalProperties: true}", "steps.a.output.c") == []
    assert reading("{type: object}", "steps.a.output.c") == []
    assert reading("{type: object, properties: {a: {}}, anyOf: [{required: [a]}]}", "steps.a.output.c") == []
    assert reading("{type: array, items: {type: object, properties: {a: {}}}}", "steps.a.output[0].b") == ["TRM209"]
    assert reading("{type: array}", "steps.a.output.b") == ["TRM209"]


def test_an_output_that_is_reshaped_is_not_judged_by_the_answers_schema() -> None:
    sound(
        steps(
            "{id: a, ai: {model: 'demo:echo', prompt: x, schema: {type: object, properties: {risk: {type: string}}}}, "
            "output: {level: '${{ result.value.risk }}'}}",
            "{id: b, local: '${{ steps.a.output.level }}'}",
        )
    )


# Branches over known values.


def choosing(spec: str, cases: str, select: str = "${{ inputs.mode }}") -> list[str]:
    return codes(
        HEAD + f"inputs: {{mode: {spec}}}\nsteps:\n  - {{id: a, branch: {{select: '{select}', cases: {cases}}}}}\n"
    )


def test_a_branch_over_known_values_has_all_of_them() -> None:
    enum = "{type: string, enum: [fast, slow]}"
    assert choosing(enum, "{fast: [], slow: []}") == []
    assert choosing(enum, "{fast: []}") == ["TRM354"]
    assert choosing(enum, "{fast: []}, default: []") == []
    assert choosing(enum, "{fast: [], slow: [], slwo: []}") == ["TRM355"]
    assert choosing("{type: boolean}", "{true: [], false: []}") == []
    assert choosing("{type: boolean}", "{true: []}") == ["TRM354"]
    assert choosing("{type: integer, enum: [200, 404]}", "{200: [], 404: []}") == []
    assert choosing("{type: string}", "{fast: []}") == []
    assert choosing(enum, "{FAST: []}", "${{ inputs.mode | upper }}") == []


def test_a_branch_over_a_declared_output_has_all_of_its_values() -> None:
    text = steps(
        "{id: ask, ai: {model: 'demo:echo', prompt: x, "
        "schema: {type: object, properties: {risk: {enum: [low, high]}}}}}",
        "{id: b, branch: {select: '${{ steps.ask.output.risk }}', cases: {low: []}}}",
    )
    assert said(text) == ["TRM354 branch `b` has no case for `high`"]


# Errors in bulk.


def test_ten_thousand_mistakes_are_told_in_a_moment() -> None:
    text = steps(*(f"{{id: s{n}, local: '${{{{ steps.x{n}.output }}}}'}}" for n in range(5000)))
    assert len(codes(text)) == 5000


# What never runs, races, is unused or waits without need.


def advised(text: str) -> list[str]:
    return [problem.code for problem in workflow.advise(sound(text))]


def told(text: str) -> list[str]:
    return [f"{problem.code} {problem.message}" for problem in workflow.advise(sound(text))]


@pytest.mark.parametrize(
    ("step", "what"),
    [
        ("{id: a, local: 1, when: '${{ 1 > 2 }}'}", "step `a` never runs: its `when` is always false"),
        ("{id: a, gate: '${{ false }}'}", "gate `a` never opens: no step behind it is reached"),
        (branch("[{id: b, local: 1}]", "[{id: c, local: 1}]"), "the steps under `else` of `choice` never run"),
    ],
)
def test_what_is_never_reached_is_a_warning(step: str, what: str) -> None:
    found = workflow.advise(sound(steps(step)))
    assert [(problem.code, problem.severity) for problem in found] == [("TRM244", "warning")]
    assert found[0].message.startswith(what)


@pytest.mark.parametrize(
    ("reading", "times"),
    [
        ("x: [{id: a, local: 1, save: {n: 1}}], y: [{id: b, local: '${{ state.n }}'}]", 1),
        ("x: [{id: a, local: '${{ state.n }}', save: {n: 1}}], y: [{id: b, local: 1}]", 0),
        ("x: [{id: a, local: '${{ state.n }}'}], y: [{id: b, local: '${{ state.n }}'}]", 0),
    ],
)
def test_state_that_is_read_beside_the_branch_that_saves_it_is_a_warning(reading: str, times: int) -> None:
    text = HEAD + f"state: {{n: {{initial: 0}}}}\nsteps:\n  - {{id: all, parallel: {{branches: {{{reading}}}}}}}\n"
    assert advised(text) == ["TRM245"] * times


def test_what_is_declared_is_used_or_said_to_be_meant() -> None:
    head = HEAD + "inputs: {a: {type: string}, b: {type: string, description: for callers}, _c: {}}\n"
    head += "secrets: {S: {env: S}}\nstate: {n: {initial: 0}, m: {initial: 0}}\nsteps:\n"
    assert told(head + "  - {id: one, local: 1, save: {m: 1}}\n") == [
        "TRM246 input `a` is used nowhere",
        "TRM246 secret `S` is used nowhere",
        "TRM246 state key `n` is used nowhere",
    ]
    used = (
        "  - {id: one, shell: {run: x, env: {A: '${{ secrets.S }}'}}}\n  - {id: two, local: '${{ [inputs, state] }}'}\n"
    )
    assert told(head + used) == []


def asking(*ids: str, more: str = "") -> list[str]:
    return [f"{{id: {id}, http: {{get: 'https://example.com/{id}'}}{more}}}" for id in ids]


def test_questions_that_need_nothing_of_each_other_could_be_asked_at_once() -> None:
    assert advised(steps(*asking("a", "b", "c"))) == ["TRM394"]
    assert advised(steps(*asking("a", "b"))) == []
    assert advised(steps(*asking("a", "b"), "{id: x, local: 1}", *asking("c"))) == []
    assert advised(steps(*asking("a", "b", "c", more=", when: '${{ run.attempt == 1 }}'"))) == []
    assert (
        advised(steps(*asking("a", "b"), "{id: c, http: {get: 'https://example.com/${{ steps.a.output.status }}'}}"))
        == []
    )
    posts = [step.replace("get:", "post:") for step in asking("a", "b", "c")]
    assert advised(steps(*posts)) == []


@pytest.mark.parametrize(
    "step",
    [
        "{id: a, local: {call: 'm:f', with: {token: 'x-${{ secrets.T }}'}}}",
        "{id: a, local: {value: {deep: [{er: '${{ secrets.T }}'}]}}}",
        "{id: a, local: '${{ secrets.T ~ run.id }}'}",
        '{id: a, local: \'${{ {"t": secrets["T"]} }}\'}',
        "{id: a, ai: {model: 'demo:${{ secrets.T }}', prompt: x}}",
        "{id: a, shell: {argv: ['${{ secrets.T }}']}}",
        "{id: a, shell: {run: x, cwd: '/${{ secrets.T }}'}}",
        "{id: a, http: {get: 'https://e.com', allow_private: '${{ secrets.T == run.id }}'}}",
        "{id: a, foreach: {items: [1], key: '${{ secrets.T ~ item }}', do: [{id: b, local: 1}]}}",
        "{id: a, gate: {check: '${{ run.attempt == 1 }}', reason: 'no ${{ secrets.T }}'}}",
        "{id: a, gate: {ask: 'Send ${{ secrets.T }}?'}}",
        "{id: a, gate: {ask: x, show: {t: '${{ secrets.T }}'}}}",
        "{id: a, local: 1, output: {t: '${{ secrets.T }}'}}",
    ],
)
def test_a_secret_finds_no_detour(step: str) -> None:
    assert secret(step) == ["TRM302"]
