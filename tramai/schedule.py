"""When a workflow starts by itself: the `schedules` of a file."""

# No annotations from the future here: msgspec would have to compile their texts in every short run.

from typing import Annotated, Any, Literal

import msgspec

from .duration import Duration

Meta = msgspec.Meta


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time at which runs start, and what they are given."""

    cron: Annotated[
        str,
        Meta(
            description="Five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday).",
            examples=["30 2 * * 1-5"],
        ),
    ]
    timezone: Annotated[
        str, Meta(description="The IANA zone in which the fields are read.", examples=["Europe/Berlin", "UTC"])
    ]
    catchup: Annotated[
        Literal["none", "last", "all"],
        Meta(description="Which of the times that were missed are made up for: none, the last one, or all."),
    ] = "none"
    catchup_window: Annotated[
        Duration | None, Meta(description="Times missed longer ago than this are not made up for.")
    ] = None
    overlap: Annotated[
        Literal["skip", "queue", "allow"],
        Meta(description="What happens while the run before is still going: no run, a run after it, or both at once."),
    ] = "skip"
    inputs: Annotated[dict[str, Any], Meta(description="What the runs are given.")] = {}
