"""For programs under libfaketime: 0.9.10 hands `clock_nanosleep` an instant that it has shifted, and Linux refuses."""

import select
import time


def _sleep(seconds: float) -> None:
    select.select((), (), (), max(seconds, 0.0))


time.sleep = _sleep  # type: ignore[assignment]
