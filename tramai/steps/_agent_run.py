"""Runs a command-line agent to its end and judges honestly what it told: success is only what is whole."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from typing import Any

from .. import size
from ..codec import Json, sha256
from ..permits import guard_folder, guard_program
from ..running import Context
from ..step import Done, Outcome, StepError, Usage
from . import _agent_failure, _answer, _guard, _process
from ._agent import Agent, Command, Task
from ._agent_report import Report
from ._child_env import environment
from ._guard import Watch

KILL_AFTER = 10.0
"""Seconds between SIGTERM and SIGKILL when an agent has to be stopped."""
_ERRORS = 64 << 10
"""Bytes of stderr that are kept; the log has all of it."""


async def carry_out(step: Agent, ctx: Context) -> Outcome:
    """Render the settings, run the agent, judge how it ended; its files of ours are removed in any case."""
    watch = _guard.watch(step.guard, ctx)
    prompt = ctx.text(step.question(), clean=watch.clean if watch is not None else None)
    if not prompt.strip():
        raise StepError("expression", "the prompt is empty")
    if watch is not None:
        prompt = watch.sections(prompt)
    model = ctx.text(step.model).strip() if step.model is not None else None
    if model is not None and (wrong := step.unknown_model(model)):
        raise StepError("refused", wrong[0], hint=wrong[1])
    cwd = os.path.normpath(os.path.join(ctx.cwd, ctx.text(step.cwd))) if step.cwd is not None else ctx.cwd
    cwd = os.path.abspath(cwd)
    own = {name: os.environ[name] for name in step.passes if name in os.environ and name not in ctx.env}
    env = environment(ctx, {**own, **{name: ctx.text(value) for name, value in step.env.items()}})
    _permit(step, ctx, cwd, env)
    folder = tempfile.mkdtemp(prefix="agent-")
    try:
        task = Task(
            prompt=prompt,
            model=model,
            schema=step.schema,
            cwd=cwd,
            folder=folder,
            longest=size.parse(step.max_output),
            say=lambda line: ctx.output("stdout", line + "\n"),
        )
        return await _run(step, ctx, task, env, watch)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _permit(step: Agent, ctx: Context, cwd: str, env: dict[str, str]) -> None:
    """Refuse what is not permitted or not there, before anything is started."""
    path = env.get("PATH", os.defpath)
    file = _process.search(step.program, path, cwd)
    guard_program(ctx, step.program, file)
    if step.sandbox != "read-only":
        guard_folder(ctx, "/" if step.sandbox == "full-access" else cwd)
    if file is None:
        what = f"{step.program} is not installed: no program of that name is on PATH ({path})"
        raise StepError("refused", what, hint=step.install, details={"program": step.program})


async def _run(step: Agent, ctx: Context, task: Task, env: dict[str, str], watch: Watch | None) -> Done:
    command = step.command(task)
    told = len(task.prompt.encode("utf-8", "surrogatepass"))
    digest = sha256(task.model)[:16] if task.model is not None else None
    ctx.signal("agent.started", agent=step.program, model_digest=digest, prompt_bytes=told)
    stdin = _process.encode("the prompt", command.stdin, nul=True) if command.stdin is not None else None
    try:
        finished = await ctx.blocking(
            lambda: _process.run(
                command.argv,
                env={**env, **command.env},
                cwd=task.cwd,
                stdin=stdin,
                interrupt=ctx.interrupt,
                hurry=ctx.hurry,
                deadline=ctx.deadline,
                kill_after=KILL_AFTER,
                cookie=_process.cookie(ctx.run_id, ctx.path, ctx.attempt),
                max_output=_ERRORS,
                log_path=ctx.log_path,
                hidden=ctx.hidden,
                names=command.names,
                read=command.report.feed,
            ),
            grace=KILL_AFTER + _process.SETTLE + 2 * _process.PATIENCE,
        )
        return _judged(step, ctx, task, command, finished, watch)
    except StepError as error:
        ctx.signal("agent.failed", agent=step.program, error_type=error.type)
        raise


def _judged(
    step: Agent, ctx: Context, task: Task, command: Command, finished: _process.Finished, watch: Watch | None
) -> Done:
    report = command.report
    report.close()
    details: dict[str, Json] = {"exit_code": finished.exit_code, "output": _agent_failure.last_lines(finished)}
    for name, told in (("session_id", report.session_id), ("signal", finished.signal), ("stuck", finished.stuck)):
        if told:
            details[name] = told
    try:
        _agent_failure.look(step, report, finished, task.longest)
        value = _value(step, report)
        if watch is not None:
            watch.judge(report.text, value)
    except StepError as error:
        error.details = {**details, **error.details}
        error.usage = report.usage
        raise
    usage = report.usage or Usage()
    spent = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost_usd": usage.cost_usd}
    ctx.signal(
        "agent.completed",
        agent=step.program,
        exit_code=finished.exit_code,
        finish_reason=_word(report.finish_reason),
        response_bytes=len(report.text.encode()),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        unread_lines=report.unread,
        survivors=finished.survivors,
    )
    result: dict[str, Json] = {"text": report.text, **value, "usage": spent, "model": report.model or task.model}
    result |= {"finish_reason": report.finish_reason, "session_id": report.session_id}
    return Done({**result, "exit_code": finished.exit_code}, usage=usage)


def _value(step: Agent, report: Report) -> dict[str, Any]:
    """The data, where a schema is given; judged here whatever the agent made of it."""
    if step.schema is None:
        return {}
    value = report.value
    if value is None:
        try:
            value = _answer.parse(report.text)
        except ValueError as error:
            raise _unfit(step, str(error)) from None
    if problems := _answer.problems(value, step.schema):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise _unfit(step, problems[0] + more)
    return {"value": value}


def _unfit(step: Agent, why: str) -> StepError:
    hint = "an agent is not asked again by itself: say in the prompt what is wanted, or let `retry` start a new session"
    return StepError("invalid_output", f"{step.program} did not answer as the schema wants: {why}", hint=hint)


def _word(reason: str | None) -> str | None:
    """A reason that is a word of its own; anything else is not told on."""
    return reason if reason is None or re.fullmatch(r"[a-z_]{1,40}", reason) else "other"
