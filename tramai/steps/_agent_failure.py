"""Why a command-line agent failed: what it told, how it ended, and which type of error that is."""

from __future__ import annotations

import re

from .. import size
from ..step import StepError
from ._agent import Agent
from ._agent_report import Report, brief, sound
from ._process import LAST_LINES, Finished

_STATUS = re.compile(
    r"(?:\bstatus:?|\bHTTP|\bAPI Error:|\brejected|\berror(?: code)?:?) \(?([45]\d\d)\b", re.IGNORECASE
)
_AUTH = re.compile(
    r"unauthori[sz]ed|not logged in|log ?in again|failed to authenticate|authentication|invalid[ _]api[ _]key|"
    r"(?:no|missing|set|provide)\b.{0,40}\b(?:api[ _-]?key|credentials?)|missing environment variable|"
    r"no inference provider|token (?:has )?expired",
    re.IGNORECASE,
)
_BUSY = re.compile(r"rate.?limit|too many requests|usage limit|quota|overloaded", re.IGNORECASE)
_NETWORK = re.compile(
    r"stream (?:disconnected|closed)|connection|connect\b|network|high demand|timed? ?out|lookup|name resolution|"
    r"reconnecting|temporarily unavailable",
    re.IGNORECASE,
)


def look(step: Agent, report: Report, finished: Finished, longest: int) -> None:
    """Raise StepError unless the agent ended well and has answered."""
    if finished.reason == "timeout":
        raise StepError("timeout", f"{step.program} ran out of time and was stopped")
    if finished.reason is not None:
        raise StepError("cancelled", f"stopped: {finished.reason}")
    if report.too_long:
        kept = size.spell(longest)
        what = f"the answer of {step.program} is longer than max_output ({kept})"
        raise StepError("truncated", what, hint="raise `max_output`, or have a long answer written to a file")
    if report.failure is not None:
        raise told(step, report.failure, report.status, finished.exit_code)
    if finished.signal is not None:
        raise StepError(f"exit.{finished.exit_code}", f"{step.program} was ended by {finished.signal}")
    if finished.exit_code != 0:
        last = last_lines(finished).rpartition("\n")[2].strip()
        raise told(step, last or f"exit status {finished.exit_code}", None, finished.exit_code)
    _whole(step, report)


def _whole(step: Agent, report: Report) -> None:
    """Raise StepError for an answer that is not whole, although nothing was said to be wrong."""
    if report.finish_reason in ("max_tokens", "length"):
        what = f"{step.program} came to a limit of its own before it was done (finish reason: {report.finish_reason})"
        raise StepError("truncated", what, hint="ask for less, or raise the limit in its own settings")
    if report.finish_reason == "refusal":
        raise StepError("refused", "the model refused to answer")
    if not report.over:
        what = f"{step.program} ended before it said that it was done"
        raise StepError("truncated", what, hint="the log of the attempt has all that it wrote")
    if not report.text.strip() and report.value is None:
        raise StepError("invalid_output", f"{step.program} returned nothing")


def told(step: Agent, message: str, status: int | None, exit_code: int) -> StepError:
    """The error for what an agent says went wrong."""
    message = brief(message)
    if status is None and (found := _STATUS.search(message)):
        status = int(found[1])
    type, hint = _type(message, status, exit_code), None
    if type == "auth":
        hint = step.sign_in
    elif type.startswith("exit."):
        hint = "`output` of the error has what it wrote to stderr; the log of the attempt has everything"
    return StepError(type, f"{step.program} failed: {message}", hint=hint)


def _type(message: str, status: int | None, exit_code: int) -> str:
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate_limited"
    if status is not None:
        return f"http.{status}"
    for pattern, type in ((_AUTH, "auth"), (_BUSY, "rate_limited"), (_NETWORK, "network")):
        if pattern.search(message):
            return type
    return f"exit.{exit_code}"


def last_lines(finished: Finished) -> str:
    """The last lines of stderr, for people."""
    text = sound(finished.stderr.text.replace("\r\n", "\n").rstrip("\n"))
    lines = [line.rpartition("\r")[2] for line in text.split("\n")]
    return "\n".join(line if len(line) <= 400 else line[:400] + "…" for line in lines[-LAST_LINES:])
