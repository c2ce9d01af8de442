"""Words from other tools: the keys of ours that say the same, and what to do where there is none."""

from __future__ import annotations

Words = dict[str, str]


def _all(words: str, saying: str) -> Words:
    return dict.fromkeys(words.split(), saying)


_LOOP = {"items": "each over list in loop for with_items values", "as": "var item variable loop_var item_name"}
_LOOP |= {"do": "steps body tasks actions", "key": "id key_by"}
ALSO: dict[str, dict[str, str]] = {
    "tramai workflow": {
        "name": "id title workflow_name",
        "steps": "step",
        "env": "environment",
        "outputs": "output return returns result results",
        "schedules": "triggers trigger cron schedule crons",
        "permits": "permissions permission allow allowed",
        "catch": "on_failure on_error onError rescue except error_handler",
        "finally": "always ensure post after cleanup",
        "defaults": "default",
        "limits": "limit budget",
        "concurrency": "mutex semaphore singleton lock max_active_runs concurrency_limit",
    },
    "concurrency": {
        "group": "key name lock mutex",
        "limit": "max count slots size max_parallel max_runs concurrency max_concurrency",
        "on_conflict": "cancel-in-progress cancel_in_progress strategy policy behavior behaviour on_limit overlap",
    },
    "step": {
        "when": "if condition only_if run_if only rules conditions",
        "description": "comment notes title label display_name displayName desc",
        "output": "outputs return returns result results",
        "catch": "on_failure on_error onError rescue except error_handler fallback",
        "save": "set_state store update_state state",
    },
    "limits": {
        "max_step_executions": "max_steps max_executions steps executions",
        "max_parallel_branches": "max_parallel parallel parallelism max_concurrency concurrency",
        "timeout": "max_duration duration time max_time",
        "max_cost_usd": "max_cost cost budget max_usd",
        "max_tokens": "tokens",
    },
    "retry": {
        "max_attempts": "attempts max times count limit retries max_retries tries",
        "delay": "interval wait initial_delay initial_interval sleep pause",
        "backoff": "factor multiplier backoff_factor exponent rate backoff_rate",
        "max_delay": "max_interval cap max_wait",
        "on": "errors error_types for types",
        "when": "if condition",
    },
    "schedule": {
        "timezone": "tz zone time_zone",
        "cron": "expression expr schedule cron_expression every interval at when",
        "catchup": "catch_up backfill",
        "overlap": "concurrency concurrency_policy concurrencyPolicy",
        "inputs": "with params parameters args",
    },
    "permits": {
        "shell": "programs commands exec run",
        "http": "hosts network urls domains",
        "write": "files folders paths fs",
    },
    "inputspec": {
        "enum": "choices options allowed one_of allowed_values",
        "pattern": "regex regexp match",
        "minimum": "min gte ge",
        "maximum": "max lte le",
        "description": "help desc title label",
        "default": "value initial",
    },
    "statespec": {"initial": "default value start initial_value"},
    "secretsource": {"env": "from_env environment var variable from", "file": "path from_file"},
    "shell": {
        "run": "cmd command script commands exec cmds bash",
        "argv": "args arguments command_line",
        "env": "environment vars variables",
        "cwd": "working-directory working_directory workdir dir chdir directory working_dir",
        "stdin": "input",
        "files": "file temp_files tmpfiles mounts",
        "sandbox": "isolation isolate container bwrap bubblewrap jail",
        "resources": "limits limit ulimit ulimits rlimits resource quota",
        "parse": "format output_format output parse_as",
        "ok_exit_codes": "exit_codes ok_codes success_codes expected_exit_codes allowed_exit_codes",
    },
    "http": {
        "query": "params parameters query_params search",
        "body": "data payload content text",
        "expect_status": "status expected_status ok_status status_codes success_codes ok expect",
        "follow_redirects": "redirects allow_redirects follow",
        "headers": "header",
        "auth": "authorization token bearer basic_auth authentication",
        "form": "form_data data_form",
        "json": "json_body",
    },
    "ai": {
        "prompt": "messages message question user input",
        "system": "system_prompt instructions system_message role",
        "max_output_tokens": "max_tokens max_completion_tokens maxTokens",
        "schema": "output_schema response_format json_schema response_schema output_type",
        "temperature": "temp",
    },
    "auth": {"bearer": "token jwt oauth access_token api_key", "basic": "user username password credentials"},
    **{
        verb: {
            "prompt": "message messages task question instructions input query",
            "cwd": "workdir working-directory working_directory working_dir dir directory folder cd",
            "env": "environment vars variables",
            "sandbox": "permission_mode permissions mode approval access permission-mode sandbox_mode",
            "schema": "output_schema json_schema response_format response_schema output_type",
            "max_output": "max_output_bytes max_tokens limit",
        }
        for verb in ("codex", "claude", "hermes")
    },
    "gate": {
        "check": "condition if when",
        "ask": "message question title approval",
        "approvers": "users reviewers assignees approver",
        "min": "approvals min_approvals count quorum required",
        "form": "fields schema inputs",
    },
    "branch": {
        "select": "on value switch expression match",
        "cases": "options branches choices",
        "if": "condition check when",
        "default": "otherwise fallback",
    },
    "parallel": {
        **_LOOP,
        "max": "concurrency max_parallel limit workers max_concurrency max_workers parallelism",
    },
    "foreach": _LOOP,
    "repeat": {
        "until": "condition break_when stop_when",
        "max": "times max_iterations count limit max_attempts",
        "do": "steps body tasks",
        "delay": "interval sleep wait pause",
    },
    "catch": {
        "do": "steps body tasks then",
        "on": "errors error types error_types exceptions",
        "output": "value default result fallback return",
        "when": "if condition",
    },
    "delay": {"for": "duration time seconds minutes hours wait", "until": "at"},
    "local": {
        "value": "expression expr template",
        "call": "function func python callable",
        "with": "args kwargs params inputs arguments",
    },
    "call": {"workflow": "file path uses name ref", "with": "inputs params args parameters"},
}
"""By title of a schema and key: what others call it. A misspelt key that is listed here is told the right one."""

_ORDER = "steps run in order of the file; what may run side by side stands in `parallel`"
_CONTAINER = "a step runs where tramai runs; start a container by `shell`"
STEPS = "put the steps under `steps`, one after another; `parallel` runs blocks side by side"
_FAIL = "to go on after a failure, say what the step gives then: catch: [{output: …}]"
_NO_REGISTER = "nothing need be registered: its output is steps.<id>.output"
HINTS: dict[str, Words] = {
    "tramai workflow": {
        "on": "when a workflow starts by itself is said under `schedules`",
        **_all("jobs tasks nodes stages pipeline plays actions states stage job task", STEPS),
        **_all("runs-on runs_on hosts image container agent pool", "a step runs where tramai runs: remove it"),
        **_all(
            "vars variables params parameters args arguments",
            "what a run is given is declared under `inputs`; what every child process sees stands under `env`",
        ),
        "timeout": "write limits: {timeout: …}",
        **_all("retry retries", "write it on the steps, or for all steps of a verb under `defaults`"),
        **_all("apiVersion kind spec metadata", "start with `tramai: 1`, `name` and `steps`"),
        **_all("imports include includes extends", "another file is called by a step: `call: ./other.yaml`"),
        **_all("templates definitions anchors", "keys of your own begin with x-"),
    },
    "step": {
        **_all("needs depends_on dependsOn deps dependencies after requires depends", _ORDER),
        "name": "`id` names a step; a sentence for people is its `description`",
        **_all(
            "continue-on-error continue_on_error continueOnError ignore_errors allow_failure soft_fail ignore_error",
            _FAIL,
        ),
        **_all(
            "retries max_retries attempts retry_count tries max_attempts maxAttempts", "write retry: {max_attempts: 3}"
        ),
        **_all("retry_delay retryDelay backoff", "write retry: {max_attempts: 3, delay: 2s, backoff: 2}"),
        **_all("finally always ensure", "`finally` belongs to the workflow, beside `steps`"),
        **_all("strategy matrix", "write parallel: {items: […], do: […]}"),
        **_all(
            "loop with_items with_list for_each forEach items loop_over",
            "put the step into foreach: {items: …, do: […]}",
        ),
        **_all(
            "timeout_minutes timeout-minutes timeout_seconds timeoutSeconds timeout_ms time_limit",
            "write `timeout` with its unit: timeout: 10m",
        ),
        **_all("register save_as output_as as result_var assign", _NO_REGISTER),
        **_all("tags labels owner metadata group", "keys of your own begin with x-"),
        **_all("container image services docker runs-on runs_on platform", _CONTAINER),
        **_all("with args params parameters inputs arguments", "what a verb needs stands under the verb itself"),
        **_all("then else", "write branch: {if: …, then: […], else: […]}"),
        **_all("cases switch", "write branch: {select: …, cases: {…}}"),
        **_all("next goto on_success", _ORDER),
    },
    "http": _all("url uri method endpoint", "give the URL under its method, as in `get: https://…`")
    | _all("verify verify_ssl insecure tls", "certificates are always verified: remove it"),
    "ai": {"provider": "the provider is the first part of `model`, as in openai:gpt-5-mini"},
    "local": _all("code script source lambda", "code stands in a Python file: call: module:function"),
    "inputspec": _all("min_length", "write minLength")
    | _all("max_length", "write maxLength")
    | _all(
        "secret sensitive writeOnly password mask",
        "inputs are recorded: declare it under `secrets`, as {env: VARIABLE}",
    ),
    "statespec": {"type": "write schema: {type: …}"},
    "secretsource": {"value": "the value of a secret never stands in the file: write {env: VARIABLE} or {file: path}"}
    | _all(
        "vault op onepassword sops aws gcp azure exec run", "ask a program for it: {command: [program, argument, …]}"
    )
    | _all("dotenv env_file", "write {env: VARIABLE} here, and `env_file` in tramai.toml or --env-file"),
    "foreach": _all(
        "max concurrency parallel", "items of foreach run one after another; `parallel` runs them side by side"
    ),
    "repeat": _all("while", "`until` is the opposite: the loop ends when it holds"),
    "catch": _all("id shell local http ai gate call", "steps stand under `do`: catch: [{do: [{id: …}]}]"),
    "branch": {"else": "`else` goes with `if`; for any other value of `select` write `default`"}
    | _all("elif elsif elseif else_if else-if", "put a step with a `branch` of its own under `else`"),
}
"""By title of a schema: keys of other tools for which there is no single key of ours."""

VERBS: Words = {
    **_all("run cmd cmds command commands script bash sh exec execute powershell", "write `shell: make test`"),
    **_all("uses", "there are no actions: write what it does as `shell`, or `call` another workflow file"),
    **_all("request url curl fetch webhook rest api get post", "write `http: {get: https://…}`"),
    **_all(
        "llm prompt model chat openai gpt completion anthropic claude_api messages",
        "write `ai: {model: provider:name, prompt: …}`",
    ),
    **_all("python function code eval py", "write `local: {call: module:function}`"),
    **_all("set assign transform compute expression value expr set_fact vars let", "write `local: ${{ … }}`"),
    **_all("sleep wait pause", "write `delay: 10m`"),
    **_all("approval approve manual confirm human manual_approval", "write `gate: {ask: …}`"),
    **_all("assert require expect check", "write `gate: {check: ${{ … }}}`"),
    **_all("switch case cases choice choose match", "write `branch: {select: …, cases: {…}}`"),
    **_all("if then else", "write `branch: {if: …, then: […], else: […]}`"),
    **_all("loop for each for_each forEach map with_items items", "write `foreach: {items: …, as: item, do: […]}`"),
    **_all("while until do_while", "write `repeat: {do: […], until: …, max: 10}`"),
    **_all("fork concurrent concurrently fanout branches matrix strategy", "write `parallel: {branches: {…}}`"),
    **_all("workflow subworkflow sub_workflow include import flow subflow", "write `call: ./other.yaml`"),
    **_all("echo print log message debug", 'write `shell: echo "…"`'),
    **_all("steps block group", "steps stand in one list; `branch`, `parallel` and `foreach` hold others"),
}
"""Words in the place of a verb."""
_SAID_APART = "the verb itself is the key, as in `shell: make test`"
NAMED: Words = dict.fromkeys(["type", "action", "kind", "task", "module", "plugin", "operator", "step"], _SAID_APART)
TYPES = {
    "array": "list tuple set sequence",
    "string": "text str varchar char url path date secret password",
    "object": "dict map mapping json hash",
    "integer": "int long",
    "number": "float double decimal",
    "boolean": "bool flag",
    "reject": "deny rejected abort stop",
    "approve": "accept approved continue proceed",
    "fail": "error failed raise",
    "collect": "continue ignore skip",
    "last": "latest one true yes",
    "none": "false no off never",
    "replayable": "always safe true retry rerun yes",
    "non_replayable": "never unsafe false manual no once nonreplayable non-replayable",
    "all": "every",
    "lines": "list",
    "merge": "update combine object",
    "append": "concat push add extend list",
    "sum": "plus increment count",
}
