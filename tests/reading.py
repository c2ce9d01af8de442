"""Workflows from texts, for tests."""

from tramai import document, plan, workflow
from tramai.errors import Problem
from tramai.plan import Plan
from tramai.workflow import Workflow

HEAD = "tramai: 1\nname: demo\n"


def examine(text: str | bytes, *, format: str = "yaml") -> tuple[Workflow | None, tuple[Problem, ...]]:
    """What `check_file` says of a file with this text."""
    return workflow.examine(document.parse(text, file=f"demo.{format}", format=format))


def sound(text: str | bytes, *, format: str = "yaml") -> Workflow:
    """The workflow of a text without any problem."""
    found, problems = examine(text, format=format)
    assert problems == ()
    assert found is not None
    return found


def planned(text: str | bytes, *, format: str = "yaml") -> Plan:
    """Its plan."""
    return plan.of(sound(text, format=format))


def said(text: str, *, format: str = "yaml") -> list[str]:
    """`CODE message` of every problem."""
    return [f"{problem.code} {problem.message}" for problem in examine(text, format=format)[1]]


def codes(text: str, *, format: str = "yaml") -> list[str]:
    """The code of every problem."""
    return [problem.code for problem in examine(text, format=format)[1]]
