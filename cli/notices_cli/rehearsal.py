"""What would become of a job now: the real workflow, without a claim and with a sender that keeps the letter."""

from __future__ import annotations

from dataclasses import dataclass

from notices.backoff import Backoff
from notices.codes import Code
from notices.event import JobSettled
from notices.jobs import Job, Requester, Requesters
from notices.kinds import AnyKind, Catalogue
from notices.mail import Answer, Letter, Mail, Verdict
from notices.message import BaseUrls
from notices.record import Claim, Clock, Notices, Result, Status
from notices.settings import Settings
from notices.tell import Skipped, Tell
from notices_cli.codes import code_of
from notices_cli.questions import Questions


class KeptMail(Mail):
    """A sender that sends nothing and accepts all."""

    def __init__(self) -> None:
        super().__init__(_NoClient(), sender=None, configuration_set=None)
        self.letter: Letter | None = None

    def send(self, letter: Letter) -> Answer:
        """Keep the letter."""
        self.letter = letter
        return Answer(Verdict.ACCEPTED, reference="rehearsal")


class _NoClient:
    def send_email(self, **_request: object) -> dict[str, object]:
        """Refuse: nothing is sent in a rehearsal."""
        raise AssertionError("a rehearsal sends nothing")


class _Quiet:
    """Telemetry that says nothing: a rehearsal is no event."""

    def count(self, metric: str, kind: str | None = None, value: float = 1) -> None:
        """Count nothing."""

    def info(self, message: str, **fields: object) -> None:
        """Say nothing."""

    def warning(self, message: str, **fields: object) -> None:
        """Say nothing."""

    def error(self, message: str, **fields: object) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would become of a job: a skip, or the kind, the job and how the attempt would end."""

    skip: Code | None = None
    kind: AnyKind | None = None
    job: Job | None = None
    requester: Requester | None = None
    result: Result | None = None
    letter: Letter | None = None

    @property
    def code(self) -> str | None:
        """The error that the attempt would end with; None when a message would be sent."""
        return code_of(self.result.error) if self.result is not None and self.result.status is Status.FAILED else None

    @property
    def told(self) -> bool:
        """Whether a message would be handed to SES."""
        return self.letter is not None


class _Remembered(Requesters):
    """Requesters that remember whom they were asked for."""

    def __init__(self, requesters: Requesters) -> None:
        self._requesters = requesters
        self.requester: Requester | None = None

    def get(self, requester_id: str) -> Requester | None:
        """Return the requester and remember it."""
        self.requester = self._requesters.get(requester_id)
        return self.requester


@dataclass(frozen=True, slots=True)
class Rehearse:
    """Rehearses with the deployed settings, as if mail were sent."""

    kinds: Catalogue
    questions: Questions
    settings: Settings
    now: Clock

    def __call__(self, event: JobSettled) -> Rehearsal:
        """Return what would become of an event. It reads the job and the requester, and writes nothing.

        Raises:
            Unprocessable: `kind_mismatch`: it would be parked.
            DatabaseError: a look-up failed.
        """
        mail = KeptMail()
        requesters = _Remembered(self.questions.requesters)
        tell = self._tell(mail, requesters)
        found = tell.find(JobSettled(event.job_id, event.outcome, event.kind))
        if isinstance(found, Skipped):
            return Rehearsal(skip=found.why, kind=found.kind)
        kind, job = found
        claim = Claim(job.job_id, event.outcome, kind.name, claim_id="rehearsal", attempt=1)
        result = tell.attempt(claim, kind, job)
        return Rehearsal(None, kind, job, requesters.requester, result, mail.letter)

    def _tell(self, mail: Mail, requesters: Requesters) -> Tell:
        settings = self.settings
        return Tell(
            kinds=self.kinds,
            jobs=self.questions.jobs,
            requesters=requesters,
            notices=Notices(self.questions.notices, now=self.now, retention=settings.retention),
            mail=mail,
            base_urls=BaseUrls(staff=settings.hq_base_url, customer=settings.customer_base_url),
            sends_mail=True,
            backoff=Backoff(settings.unknown_grace),
            telemetry=_Quiet(),
            now=self.now,
        )
