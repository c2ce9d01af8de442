"""The contract of a step type, as tests: subclass `StepContract`, name the class and settings for it, and run pytest.

    from tramai.testing.step_contract import StepContract

    class TestTicket(StepContract):
        step = Ticket
        name = "ticket"                                # of its entry point

        def settings(self, folder):
            return {"title": "red", "board": {"file": f"{folder}/tickets.jsonl"}}

The suite is `_step_suite`. The package need not be installed; once it is, its entry point is looked at as well.
"""

# ruff: noqa: E402 (pytest must be told before the suite is imported, or its asserts explain nothing)

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(f"{__package__}._step_suite")

from ._step_suite import Carrying, Reading

__all__ = ["StepContract"]


class StepContract(Reading, Carrying):
    """Everything a step type of another package promises. Override `step`, `name` and `settings`."""
