"""A module that talks when it is imported."""

from typing import Any

from tramai.step import Done, Outcome, Step

print("hello from the package")


class Noisy(Step, frozen=True, kw_only=True):
    """Quiet, once it is there."""

    async def run(self, ctx: Any) -> Outcome:
        """Nothing."""
        return Done(1)
