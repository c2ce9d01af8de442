"""Open questions of gates, for people and for documents."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from ..deciding import Open
from ._advice import short
from ._clockface import stamp, until
from ._gate_documents import QuestionView, VoteView
from ._terminal import Terminal, safe, safe_lines
from ._values import lines as value_lines
from ._values import scalar


def view(one: Open) -> QuestionView:
    """A question as its document shows it."""
    question = one.question
    return QuestionView(
        path=one.path,
        asking=question.number,
        ask=question.ask,
        show=question.show,
        form=question.form,
        approvers=[*question.approvers],
        min=question.min,
        asked=question.asked,
        deadline=question.deadline,
        on_timeout=question.on_timeout,
        votes=[VoteView(**msgspec.structs.asdict(vote)) for vote in one.votes],
        decision=one.decision.decision if one.decision is not None else None,
    )


def commands(run_id: str, questions: Sequence[QuestionView], now: float) -> list[str]:
    """What to type for each question that can still be decided."""
    open_ = [one for one in questions if one.decision is None and (one.deadline is None or now < one.deadline)]
    return [command(run_id, one.path, (one.form or {}).get("required", ()), alone=len(open_) == 1) for one in open_]


def command(run_id: str, path: str, needed: Sequence[str], *, alone: bool) -> str:
    """The command that approves; the fields that it needs are named."""
    parts = ["tramai approve", short(run_id), *([] if alone else [shlex.quote(path)])]
    parts += [f"--data {shlex.quote(f'{name}=')}…" for name in needed]
    return " ".join([*parts, '--comment "…"'])


def described(terminal: Terminal, one: QuestionView, indent: int, now: float) -> list[str]:
    """What is asked and shown, who may decide until when, and what was said: everything but the name of the step."""
    blank = " " * indent
    lines = [blank + terminal.paint(line, "bold") for line in safe_lines(one.ask)]
    if one.show is not None:
        lines += value_lines(one.show, indent + 2) if isinstance(one.show, dict | list) else _text(one.show, indent + 2)
    for name, field in fields(one.form):
        lines.append(f"{blank}  {safe(name)}: {_field(field, name in (one.form or {}).get('required', ()))}")
    lines += [f"{blank}{line}" for line in _terms(one, now)]
    for vote in one.votes:
        who = f" by {safe(vote.by)}" if vote.by else ""
        said = f": {safe_lines(vote.comment)[0]}" if vote.comment else ""
        lines.append(f"{blank}{vote.decision}{who} {stamp(vote.at)}{said}")
    return lines


def fields(form: dict[str, Any] | None) -> list[tuple[str, dict[str, Any]]]:
    """The fields of a form, those that are required first."""
    found = dict((form or {}).get("properties") or {})
    required = [name for name in (form or {}).get("required", ()) if name in found]
    return [(name, found[name]) for name in dict.fromkeys([*required, *found])]


def _text(value: Any, indent: int) -> list[str]:
    if isinstance(value, str):
        return [" " * indent + line for line in safe_lines(value.rstrip("\n"))]
    return value_lines(value, indent)


def _field(field: dict[str, Any], needed: bool) -> str:
    kind = "one of " + ", ".join(map(scalar, field["enum"])) if "enum" in field else str(field.get("type", "text"))
    kind = "text" if kind == "string" else kind
    facts = [kind, "required" if needed else ""]
    if "default" in field:
        facts.append(f"default {scalar(field['default'])}")
    said = f"  {safe_lines(field['description'])[0]}" if field.get("description") else ""
    return f"({', '.join(fact for fact in facts if fact)}){said}"


def _terms(one: QuestionView, now: float) -> list[str]:
    found = []
    if one.approvers:
        found.append("who may decide: " + ", ".join(map(safe, one.approvers)))
    if one.min > 1:
        have = len({vote.by for vote in one.votes if vote.decision == "approved"})
        found.append(f"{have} of {one.min} approvals")
    if one.decision is not None:
        found.append(f"decided: {one.decision}; the run has not gone on yet")
    elif one.deadline is not None:
        over = now >= one.deadline
        ended = f"the time to decide is over since {stamp(one.deadline)}"
        found.append(ended if over else f"until {until(one.deadline, now)}, then {one.on_timeout}")
    return found


def of(waiting: Sequence[Open]) -> list[QuestionView]:
    """The documents of several."""
    return [view(one) for one in waiting]


def now() -> float:
    """The time that deadlines are held against."""
    return time.time()
