"""What a soak is judged by: the notices as the table has them, and the mails as the mail front took them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from demo.mail_front import SentMail

TIME = "%Y-%m-%dT%H:%M:%S.%f%z"  # DESIGN 3.2


@dataclass(frozen=True)
class Report:
    """The figures of one soak. The last three name jobs; all are empty when all went well.

    Nothing in a soak is refused for good, suppressed or given up, so a notice that ended so is ``undelivered``.
    """

    notices: int
    by_status: Mapping[str, int]
    mails: int
    mails_per_notice: Mapping[int, int]  # so many mails: so many notices
    extra_mails: Mapping[str, int]  # why a notice had a mail too many: how often
    attempts: Mapping[int, int]
    results: Mapping[str, int]  # of all attempts, with the error's code
    feedback: Mapping[str, int]
    seconds_from_event: Mapping[str, float]  # until it was settled: the time in the queue included
    seconds_from_claim: Mapping[str, float]  # likewise, from the first claim
    unsettled: Sequence[str]
    undelivered: Sequence[str]
    unexplained: Sequence[str]

    @property
    def clean(self) -> bool:
        """Whether every requester was told and every mail too many has a reason that DESIGN 2 states."""
        return not self.unsettled and not self.undelivered and not self.unexplained

    def as_json(self) -> dict[str, Any]:
        """Return the figures for a file."""
        return {**asdict(self), "clean": self.clean}


def report(sent_at: Mapping[str, datetime], items: Iterable[Mapping[str, Any]], mails: Iterable[SentMail]) -> Report:
    """Judge a soak; ``sent_at`` says when the first event of each job was put on the queue."""
    notices = {str(item["job_id"]): item for item in items}
    by_job: dict[str, list[SentMail]] = defaultdict(list)
    for mail in mails:
        by_job[job_of(mail)].append(mail)
    whys = [(job_id, why) for job_id, sent in by_job.items() for why in whys_again(notices.get(job_id, {}), sent)]
    log = [entry for notice in notices.values() for entry in notice["attempt_log"]]
    settled = {job_id: notice for job_id, notice in notices.items() if job_id in sent_at and is_settled(notice)}
    return Report(
        notices=len(sent_at),
        by_status=dict(Counter(str(notice["status"]) for notice in notices.values())),
        mails=sum(map(len, by_job.values())),
        mails_per_notice=_sorted(Counter(len(by_job.get(job_id, ())) for job_id in sent_at)),
        extra_mails=dict(Counter(why or "unexplained" for _, why in whys)),
        attempts=_sorted(Counter(int(notice["attempts"]) for notice in notices.values())),
        results=dict(Counter(" ".join(filter(None, (entry["result"], _code(entry)))) for entry in log)),
        feedback=dict(Counter(str(notice.get("feedback", {}).get("type", "none")) for notice in notices.values())),
        seconds_from_event=_spread([_until_settled(notice, sent_at[job_id]) for job_id, notice in settled.items()]),
        seconds_from_claim=_spread(
            [_until_settled(notice, _time(notice["created_at"])) for notice in settled.values()]
        ),
        unsettled=sorted(
            job_id
            for job_id in sent_at
            if not is_settled(notices.get(job_id, {})) or (not by_job.get(job_id) and _delivered(notices[job_id]))
        ),
        undelivered=sorted(job_id for job_id, notice in settled.items() if not _delivered(notice)),
        unexplained=sorted({job_id for job_id, why in whys if why is None}),
    )


def is_settled(notice: Mapping[str, Any]) -> bool:
    """Whether nothing more is to come of a notice."""
    return "handled_at" in notice and "next_attempt_at" not in notice


def whys_again(notice: Mapping[str, Any], mails: Sequence[SentMail]) -> list[str | None]:
    """Return why each of a notice's mails but that of the latest claim was followed by another.

    Mails need not go out in the order of their claims. The log has that order: a later claim finds the earlier one
    pending, and logs it as abandoned, or failed, which is logged as well. What the log does not explain is None: a
    second mail under one claim too, and one after a delivery that nobody claimed before.
    """
    claims = [mail.tags.get("notice_claim") for mail in mails]
    logged = list(dict.fromkeys(entry["claim_id"] for entry in notice.get("attempt_log", ())))
    in_order = sorted(set(claims), key=lambda claim: logged.index(claim) if claim in logged else len(logged))
    again: list[str | None] = [None] * (len(claims) - len(in_order))
    return again + [_why_claimed_again(notice, claim) for claim in in_order[:-1]]


def _why_claimed_again(notice: Mapping[str, Any], claim: str | None) -> str | None:
    results = {
        (str(entry["result"]), _code(entry)) for entry in notice.get("attempt_log", ()) if entry["claim_id"] == claim
    }
    if ("failed", "provider_unknown") in results:
        return "its answer was lost, and it was sent again before SES's event came"
    if ("abandoned", "") in results:
        return "its worker died or was still at it when another event claimed the notice"
    return None


def job_of(mail: SentMail) -> str:
    """Return the job that a mail tells of: the last line of its details."""
    return mail.text.partition("Reference: ")[2].partition("\n")[0].strip()


def _code(entry: Mapping[str, Any]) -> str:
    return str(entry.get("error") or "").partition(":")[0]


def _delivered(notice: Mapping[str, Any]) -> bool:
    return bool(notice["status"] == "delivered")


def _sorted(counts: Mapping[int, int]) -> dict[int, int]:
    return dict(sorted(counts.items()))


def _time(text: str) -> datetime:
    return datetime.strptime(text, TIME)


def _until_settled(notice: Mapping[str, Any], since: datetime) -> float:
    return (_time(notice["handled_at"]) - since).total_seconds()


def _spread(seconds: Iterable[float]) -> dict[str, float]:
    waits = sorted(seconds)
    if not waits:
        return {}
    at = {"median": 0.5, "p95": 0.95, "p99": 0.99, "longest": 1.0}
    return {name: round(waits[min(len(waits) - 1, int(len(waits) * share))], 1) for name, share in at.items()}
