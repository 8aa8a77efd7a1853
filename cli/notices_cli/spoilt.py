"""Notices that somebody spoilt by hand. One of them hides no other: the tool names it and goes on."""

from __future__ import annotations

from pynamodb.exceptions import AttributeDeserializationError

from notices.database import Item
from notices.feedback import News
from notices.record import Notice, Status

NEEDED = ("kind", "attempts", "claimed_at", "created_at", "revision", "attempt_log")


class SpoiltNotice(Exception):
    """An item of the notices table that is no notice: no function writes such a one."""

    def __init__(self, job_id: str, outcome: str, why: str) -> None:
        super().__init__(f"the notice of {job_id} {outcome} cannot be read: {why}")
        self.job_id, self.outcome, self.why = job_id, outcome, why


def readable(item: Item) -> Notice:
    """Return an item as the notice that it is.

    Raises:
        SpoiltNotice: it is none.
    """
    key = item["job_id"]["S"], item["outcome"]["S"]
    try:
        notice = Notice.from_raw_data(item)
        incomplete = any(entry.attempt is None or entry.recorded_at is None for entry in notice.attempt_log or ())
    except AttributeDeserializationError:
        raise SpoiltNotice(*key, "an attribute is of another type") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise SpoiltNotice(*key, "an attribute has a value that none can have") from None
    if notice.status not in list(Status):
        raise SpoiltNotice(*key, "its status is none that there is")
    if notice.feedback is not None and notice.feedback.type not in list(News):
        raise SpoiltNotice(*key, "its feedback is none that SES gives")
    missing = [name for name in NEEDED if getattr(notice, name) is None]
    if missing or incomplete:
        raise SpoiltNotice(*key, f"it has no {', '.join(missing) or 'whole attempt_log'}")
    return notice
