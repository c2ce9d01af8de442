"""The JSON document of `tramai test`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ._problem_documents import Finding

Text = str | None


class Tested(Struct, frozen=True, kw_only=True):
    """One test. `crashes`: how often its run was cut off and had to end the same."""

    name: str
    line: int
    column: int
    status: Literal["passed", "failed"]
    seconds: float
    crashes: int
    problems: list[Finding]


class TestedFile(Struct, frozen=True, kw_only=True):
    """A test file. `problems` are its own, and keep all tests from running when one is an error."""

    file: str
    workflow: Annotated[Text, Meta(description="the workflow file; null when the test file cannot be read")]
    problems: list[Finding]
    tests: list[Tested]
    missed: Annotated[list[str], Meta(description="steps of the workflow that no test came to")]


class Tests(Struct, frozen=True, kw_only=True):
    """What `test` found."""

    schema: Literal["tramai.tests/1"] = "tramai.tests/1"
    passed: int
    failed: int
    seconds: float
    files: list[TestedFile]


class ListedTest(Struct, frozen=True, kw_only=True):
    """A test that could be run."""

    file: str
    name: str


class Listed(Struct, frozen=True, kw_only=True):
    """What `test --list` found."""

    schema: Literal["tramai.test-list/1"] = "tramai.test-list/1"
    tests: list[ListedTest]
