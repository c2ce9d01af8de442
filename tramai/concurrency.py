"""Which runs are not carried out at the same time, and what becomes of one that comes too late: `concurrency`."""

# No annotations from the future here: msgspec would have to compile their texts in every short run.

from typing import Annotated, Literal

import msgspec

from .expression import Template

Meta = msgspec.Meta


class Concurrency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the runs of one group, also of other workflows, at most `limit` are carried out at the same time."""

    group: Annotated[
        Template,
        Meta(
            description="The name of the group. It may read inputs; it is made once, when the run starts, and kept.",
            examples=["deploy", "deploy-${{ inputs.host }}"],
        ),
    ]
    limit: Annotated[
        int, Meta(ge=1, description="How many runs of the group may be carried out at once.", examples=[1, 4])
    ] = 1
    on_conflict: Annotated[
        Literal["queue", "skip", "cancel_running", "fail"],
        Meta(
            description="What a new run does when there is no place: wait for one, end as cancelled, cancel the older "
            "runs in its way and wait for their end, or fail.",
        ),
    ] = "queue"
