"""The four hops (DESIGN 3.5): every branch, with the kinds that ship."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.clock import START
from fakes.gate import Gate, Lever, raising
from fakes.kinds import one_kind
from fakes.mail import MISCONFIGURED, REFUSED, SEND_EMAIL, THROTTLED, UNKNOWN, failing
from fakes.store import read_timeout, refusal
from fakes.world import JOBS, KIND, NOTICES, REQUESTERS, World
from notices.database import DatabaseError
from notices.event import JobSettled, Unprocessable
from notices.kinds import KINDS, load_catalogue
from notices.mail import Mail, Verdict, job_id_from_tag
from notices.record import ClaimContended
from notices.tell import WORST_CASE_SECONDS, Told

FAULTS = [refusal("GetItem", "ThrottlingException"), read_timeout()]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def gate() -> Gate:
    return Gate()


def nothing_happened(world: World) -> bool:
    return world.store.items(NOTICES) == [] and world.provider.letters == []


# -- the plain way ------------------------------------------------------------------------------------------------


def test_the_requester_is_told_in_four_hops(world, gate):
    told = world.worker(gate).told()

    assert told == Told("delivered", KIND, attempt=1)
    assert gate.calls == ["GetItem", "PutItem", "GetItem", SEND_EMAIL, "UpdateItem"]
    (letter,) = world.provider.letters
    assert letter.recipient == "dana@example.com"
    assert "Blue" in letter.subject
    assert letter.html
    assert world.the_notice().provider_reference == "message-1"
    assert world.telemetry.counts == {("NoticeDelivered", KIND): 1}


def test_the_tags_let_an_event_find_the_notice(world):
    world.worker().told()
    tags = world.provider.letters[0].tags
    assert job_id_from_tag(tags["notice_job"]) == "job-1"
    assert (tags["notice_outcome"], tags["notice_claim"]) == ("succeeded", world.the_notice().claim_id)


def test_nothing_is_sent_before_its_claim_is_durable(world, gate):
    def look(operation, kwargs) -> None:
        if operation == SEND_EMAIL:
            notice = world.the_notice()
            assert (notice.status, notice.claim_id) == ("pending", kwargs["tags"]["notice_claim"])

    gate.on_call = look
    assert world.worker(gate).told().result == "delivered"


def test_the_seconds_to_tell_are_counted_where_the_event_said_when_it_settled(world):
    world.worker().told(settled_at=START - timedelta(seconds=90))
    assert world.telemetry.values["SecondsToTell"] == [90]
    assert ("SecondsToTell", KIND) in world.telemetry.counts


def test_a_settled_at_in_the_future_counts_no_negative_seconds(world):
    world.worker().told(settled_at=START + timedelta(seconds=90))
    assert world.telemetry.values["SecondsToTell"] == [0]


def test_the_event_may_name_the_jobs_own_kind(world):
    assert world.worker().told(kind=KIND).result == "delivered"


def test_both_outcomes_of_a_job_are_notices_of_their_own(world):
    world.worker().told(outcome="succeeded")
    world.worker().told(outcome="failed")
    assert len(world.provider.letters) == len(world.store.items(NOTICES)) == 2


# -- hop 1: skips -------------------------------------------------------------------------------------------------

SKIPS = {
    "a job that is not there": (lambda world: world.store.discard(JOBS, "job-1"), "job_removed"),
    "a removed job": (lambda world: world.job(removed_at="2026-11-29T09:00:00Z"), "job_removed"),
    "a job nobody asked for": (lambda world: world.job(requester_id=None), "no_requester"),
    "a job of another kind": (lambda world: world.job(kind="no_such_kind"), "undeclared"),
    "a job without a kind": (lambda world: world.job(kind=None), "undeclared"),
}


@pytest.mark.parametrize("name", SKIPS)
def test_a_skip_is_an_ordinary_result_with_one_look_up_and_without_a_record(world, gate, name):
    arrange, reason = SKIPS[name]
    arrange(world)

    told = world.worker(gate).told()

    assert (told.result, told.reason) == ("skipped", reason)
    assert nothing_happened(world)
    assert gate.calls == ["GetItem"]
    assert world.telemetry.metrics() == {"NoticeSkipped"}


def test_an_outcome_that_the_kind_does_not_declare_is_skipped(world, gate):
    told = world.worker(gate).told(outcome="cancelled")
    assert (told.result, told.reason) == ("skipped", "undeclared")
    assert nothing_happened(world)


@pytest.mark.parametrize("kind", ["nope", "../../etc/passwd", "WORKSPACE_PROVISIONING", ""])
def test_an_event_of_a_kind_that_nobody_is_told_of_is_skipped_without_a_look_up(world, gate, kind):
    told = world.worker(gate).told(kind=kind)
    assert (told.result, told.reason, told.kind) == ("skipped", "undeclared", None)
    assert gate.calls == []
    assert world.telemetry.counts == {("NoticeSkipped", None): 1}


@pytest.mark.parametrize(
    ("changes", "event"),
    [({"requester_id": None}, {}), ({"requester_id": None}, {"kind": KIND}), ({}, {"outcome": "x"})],
)
def test_a_skip_of_a_job_whose_kind_is_known_counts_by_that_kind(world, changes, event):
    world.job(**changes)
    assert world.worker().told(**event).kind == KIND
    assert world.telemetry.counts == {("NoticeSkipped", KIND): 1}


def test_a_kind_that_contradicts_the_job_is_refused(world):
    world.job(kind="no_such_kind")
    with pytest.raises(Unprocessable) as refused:
        world.worker().told(kind=KIND)
    assert refused.value.reason == "kind_mismatch"
    assert nothing_happened(world)


# -- hop 1 of a retried event: it closes its notice ---------------------------------------------------------------


def retried(world: World) -> int:
    world.provider.script.append(THROTTLED)
    world.worker().told()
    world.clock.advance(timedelta(minutes=16))
    world.worker().run_retry()
    return world.queues.events()[-1]["retry"]


@pytest.mark.parametrize("name", SKIPS)
def test_a_retried_event_that_meets_a_skip_closes_its_notice_with_the_reason(world, name):
    arrange, reason = SKIPS[name]
    retry = retried(world)
    arrange(world)

    assert world.worker().told(retry=retry).reason == reason

    notice = world.the_notice()
    assert (notice.status, notice.error, notice.next_attempt_at) == ("failed", reason, None)
    assert notice.handled_at == world.clock()
    assert notice.attempt_log[-1].error == reason


def test_a_retried_event_of_a_kind_that_is_gone_closes_its_notice(world):
    retry = retried(world)
    world.worker().told(retry=retry, kind="gone")
    assert world.the_notice().error == "undeclared"


def test_a_retried_event_that_contradicts_the_job_closes_its_notice(world):
    retry = retried(world)
    world.job(kind="no_such_kind")
    with pytest.raises(Unprocessable):
        world.worker().told(retry=retry, kind=KIND)
    assert (world.the_notice().error, world.the_notice().next_attempt_at) == ("kind_mismatch", None)


@pytest.mark.parametrize("named", [-1, 1])
def test_a_retried_event_at_another_revision_closes_nothing(world, named):
    retry = retried(world)
    world.store.discard(JOBS, "job-1")
    world.worker().told(retry=retry + named)
    assert world.the_notice().next_attempt_at is not None


def test_a_fresh_event_that_meets_a_skip_closes_nothing(world):
    retried(world)
    world.store.discard(JOBS, "job-1")
    world.worker().told()
    assert world.the_notice().next_attempt_at is not None


def test_a_retried_event_does_not_close_a_delivered_notice(world):
    world.worker().told()
    world.store.discard(JOBS, "job-1")
    world.worker().told(retry=2)
    assert world.the_notice().status == "delivered"


def test_a_retried_event_of_a_notice_that_is_gone_creates_none(world):
    world.store.discard(JOBS, "job-1")
    assert world.worker().told(retry=2).result == "skipped"
    assert nothing_happened(world)


def test_a_close_that_fails_goes_back_to_the_queue(world, gate):
    retry = retried(world)
    world.store.discard(JOBS, "job-1")
    gate.on_call = Lever(raising(refusal("UpdateItem", "ThrottlingException")), operation="UpdateItem")
    with pytest.raises(DatabaseError):
        world.worker(gate).told(retry=retry)


# -- hop 1 and 2: what goes back to the queue ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [refusal("GetItem", "ThrottlingException"), read_timeout()], ids=["throttled", "time-out"]
)
@pytest.mark.parametrize("call", [1, 2])
def test_a_look_up_or_claim_that_fails_goes_back_to_the_queue(world, gate, call, error):
    gate.on_call = Lever(raising(error), nth=call)
    with pytest.raises(DatabaseError):
        world.worker(gate).told()
    assert nothing_happened(world)


def test_a_contended_claim_goes_back_to_the_queue(world, gate):
    other = world.worker().notices

    def claims(operation, kwargs) -> None:
        if operation == "PutItem":
            other.claim(world.worker().tell.jobs.get("job-1"), "succeeded")

    gate.on_call = claims
    with pytest.raises(ClaimContended):
        world.worker(gate).told()
    assert world.provider.letters == []


# -- hop 2: what is left alone ------------------------------------------------------------------------------------


def test_a_handled_notice_costs_two_calls_and_sends_nothing(world, gate):
    world.worker().told()
    told = world.worker(gate).told()
    assert (told.result, told.kind) == ("already_handled", KIND)
    assert gate.calls == ["GetItem", "PutItem"]
    assert len(world.provider.letters) == 1
    assert world.telemetry.counts["NoticeAlreadyHandled", KIND] == 1


def test_a_notice_in_progress_is_left_alone():
    world = World(lease=timedelta(seconds=60))
    world.worker().notices.claim(world.worker().tell.jobs.get("job-1"), "succeeded")
    assert world.worker().told().result == "in_progress"
    assert world.telemetry.counts == {("NoticeInProgress", KIND): 1}
    assert world.provider.letters == []


def test_a_retry_that_was_overtaken_is_void(world):
    retry = retried(world)
    assert world.worker().told(retry=retry - 1).result == "retry_overtaken"
    assert world.telemetry.counts["RetryOvertaken", KIND] == 1
    assert len(world.provider.letters) == 1


# -- hop 3: what fails after the claim ----------------------------------------------------------------------------


def failed(world: World, *, again: bool) -> str:
    """Check that the notice failed and return its error."""
    notice = world.the_notice()
    assert notice.status == "failed"
    assert (notice.next_attempt_at is not None) is again
    assert notice.attempt_log[-1].error == notice.error
    assert world.telemetry.counts["NoticeFailed", KIND] == 1
    assert world.telemetry.total("NoticeFailedForGood") == (0 if again else 1)
    return notice.error


@pytest.mark.parametrize(
    ("job_tenant", "requester_tenant"),
    [("tenant-1", "tenant-2"), ("tenant-1", None), (None, "tenant-1"), (None, None), ("tenant-1", "TENANT-1")],
)
def test_a_customer_of_another_tenant_is_not_told(world, job_tenant, requester_tenant):
    world.job(tenant_id=job_tenant)
    world.requester(tenant_id=requester_tenant)

    assert world.worker().told().result == "failed"

    assert failed(world, again=False) == "tenant_mismatch"
    assert world.provider.letters == []
    assert world.telemetry.counts["TenantMismatch", KIND] == 1


def test_staff_may_be_told_of_any_tenants_job(world):
    world.requester(audience="staff", tenant_id=None)
    assert world.worker().told().result == "delivered"


@pytest.mark.parametrize(
    ("email", "code"),
    [
        (None, "address_missing"),
        (" ", "address_missing"),
        ("dana", "address_invalid"),
        ("dané@example.com", "address_invalid"),
    ],
)
def test_an_address_that_cannot_be_used_fails_for_good(world, email, code):
    world.requester(email=email)
    world.worker().told()
    assert failed(world, again=False) == code
    assert world.provider.letters == []


def test_the_address_is_trimmed_and_its_domain_goes_to_idna(world):
    world.requester(email="  Dana@bücher.example ")
    world.worker().told()
    assert world.provider.letters[0].recipient == "Dana@xn--bcher-kva.example"


def test_a_requester_who_is_not_there_is_tried_again(world):
    world.store.discard(REQUESTERS, "requester-1")
    world.worker().told()
    assert failed(world, again=True) == "requester_missing"


@pytest.mark.parametrize(
    "error", [refusal("GetItem", "ThrottlingException"), read_timeout()], ids=["throttled", "time-out"]
)
def test_a_look_up_that_fails_after_the_claim_is_an_internal_error_and_acknowledged(world, gate, error):
    gate.on_call = Lever(raising(error), operation="GetItem", nth=2)
    assert world.worker(gate).told().result == "failed"
    assert failed(world, again=True).startswith("internal_error: ")


def test_a_text_that_cannot_be_written_is_a_template_error_with_an_alarm(world, tmp_path):
    kinds = shutil.copytree(KINDS, tmp_path / "kinds")
    text = kinds / KIND / "en" / "succeeded.j2"
    text.write_text(text.read_text().replace("Open the workspace", "Open {{ facts.workspace_id }}"))
    world.job(details={"workspace_name": "Blue"})
    worker = world.worker()

    replace(worker.tell, kinds=load_catalogue(kinds))(JobSettled("job-1", "succeeded"))

    error = failed(world, again=True)
    assert error.startswith("template_error: ")
    assert "workspace_id" in error
    assert world.telemetry.counts["MailMisconfigured", KIND] == 1
    assert world.provider.letters == []


def test_a_notice_of_a_broken_kind_is_a_template_error_and_goes_out_once_the_kind_is_mended(world, tmp_path):
    kinds = shutil.copytree(KINDS, tmp_path / "kinds")
    (kinds / KIND / "kind.toml").write_text("title = ", encoding="utf-8")
    world.job()
    worker = world.worker()

    replace(worker.tell, kinds=load_catalogue(kinds))(JobSettled("job-1", "succeeded"))

    error = failed(world, again=True)
    assert error.startswith(f"template_error: the kind '{KIND}' is broken (")
    assert f"{KIND}/kind.toml:1" in error
    assert len(error) <= 256
    assert world.telemetry.counts["MailMisconfigured", KIND] == 1
    assert worker.tell(JobSettled("job-1", "succeeded")).result == "delivered"


def test_a_broken_kind_leaves_the_notices_of_other_kinds_alone(world, tmp_path):
    kinds = one_kind(tmp_path)
    shutil.copytree(kinds / KIND, kinds / "export")
    (kinds / "export" / "en" / "succeeded.j2").write_text("{% block", encoding="utf-8")
    world.job()
    worker = world.worker()

    told = replace(worker.tell, kinds=load_catalogue(kinds))(JobSettled("job-1", "succeeded"))

    assert told.result == "delivered"


def test_anything_unforeseen_is_an_internal_error_without_its_text(world):
    world.provider.script.append(RuntimeError("dana@example.com"))
    assert world.worker().told().result == "failed"
    assert failed(world, again=True) == "internal_error: RuntimeError"
    assert "dana" not in str(world.telemetry.lines)


def test_what_the_provider_refuses_fails_for_good(world):
    world.provider.script.append(REFUSED)
    assert world.worker().told().error == REFUSED.error
    assert failed(world, again=False) == "provider_refused: MessageRejected"


@pytest.mark.parametrize(
    ("answer", "alarm"),
    [
        (THROTTLED, False),
        (UNKNOWN, False),
        (failing(Verdict.UNAVAILABLE, "provider_unreachable"), False),
        (failing(Verdict.UNAVAILABLE, "quota_exceeded"), False),
        (MISCONFIGURED, True),
    ],
    ids=lambda value: getattr(value, "code", value),
)
def test_any_other_answer_is_tried_again(world, answer, alarm):
    world.provider.script.append(answer)
    world.worker().told()
    assert failed(world, again=True) == answer.error
    assert ("MailMisconfigured" in world.telemetry.metrics()) is alarm


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [
        (THROTTLED, 48, 72),
        (UNKNOWN, 600, 720),
        (failing(Verdict.UNAVAILABLE, "quota_exceeded"), 3600, 4320),
    ],
    ids=["throttled", "unknown", "quota"],
)
def test_when_it_is_tried_again_depends_on_the_answer(world, answer, least, most):
    world.provider.script.append(answer)
    world.worker().told()
    assert least <= (world.the_notice().next_attempt_at - START).total_seconds() <= most


def test_the_backoff_grows_with_each_attempt(world):
    world.provider.script.extend([THROTTLED] * 6)
    waits = []
    for _ in range(6):
        world.worker().told()
        waits.append((world.the_notice().next_attempt_at - world.clock()).total_seconds())
    assert all(1.3 < later / earlier < 3 for earlier, later in itertools.pairwise(waits))


def test_without_a_from_address_the_notice_says_so(world):
    unset = Mail(None, sender=None, configuration_set=None)
    replace(world.worker().tell, mail=unset)(JobSettled("job-1", "succeeded"))
    error = failed(world, again=True)
    assert error.startswith("sender_unset")
    assert "NOTICE_FROM_ADDRESS" in error
    assert "MAIL_FROM_ADDRESS" in error
    assert world.telemetry.counts["MailMisconfigured", KIND] == 1


# -- outside production -------------------------------------------------------------------------------------------


def test_outside_production_all_but_the_send_is_done(gate):
    world = World(production=False)
    told = world.worker(gate).told()
    assert told == Told("suppressed", KIND, attempt=1)
    assert SEND_EMAIL not in gate.calls
    assert world.the_notice().provider_reference is None
    assert world.the_notice().handled_at is not None
    assert world.telemetry.counts == {("NoticeSuppressed", KIND): 1}


def test_outside_production_a_missing_address_fails_too():
    world = World(production=False)
    world.requester(email=None)
    world.worker().told()
    assert failed(world, again=False) == "address_missing"


def test_outside_production_another_tenants_requester_fails_too():
    world = World(production=False)
    world.requester(tenant_id="tenant-2")
    world.worker().told()
    assert failed(world, again=False) == "tenant_mismatch"


def test_a_suppressed_notice_is_handled():
    world = World(production=False)
    world.worker().told()
    assert world.worker().told().result == "already_handled"


# -- hop 4 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "tries"), [("ThrottlingException", 2), ("ValidationException", 1), ("AccessDeniedException", 1)]
)
def test_an_outcome_that_cannot_be_recorded_is_logged_with_its_reference_and_acknowledged(world, gate, code, tries):
    def refuse(operation, kwargs) -> None:
        if operation == "UpdateItem":
            raise refusal(operation, code)

    gate.on_call = refuse
    told = world.worker(gate).told()

    assert (told.result, told.recorded) == ("delivered", "not_recorded")
    assert gate.calls.count("UpdateItem") == tries
    (line,) = world.telemetry.said("outcome not recorded")
    assert line.level == "error"
    assert line.fields["provider_reference"] == "message-1"
    assert (line.fields["job_id"], line.fields["outcome"]) == ("job-1", "succeeded")
    assert code in line.fields["error"]
    assert world.telemetry.counts == {("OutcomeNotRecorded", KIND): 1}
    assert world.the_notice().status == "pending"
    assert world.the_notice().next_attempt_at == START + timedelta(minutes=15)


def test_anything_unforeseen_while_recording_is_acknowledged_too(world, gate):
    gate.on_call = Lever(raising(RuntimeError("dana@example.com")), operation="UpdateItem")
    assert world.worker(gate).told().recorded == "not_recorded"
    assert world.telemetry.counts == {("OutcomeNotRecorded", KIND): 1}
    assert "dana@" not in str(world.telemetry.lines)


def test_an_outcome_for_a_notice_that_is_gone_creates_none_and_is_counted(world, gate):
    gate.on_call = Lever(lambda: world.store.discard(NOTICES, "job-1", "succeeded"), operation="UpdateItem")
    assert world.worker(gate).told().recorded == "item_gone"
    assert world.store.items(NOTICES) == []
    assert world.telemetry.counts == {("OutcomeNotRecorded", KIND): 1}
    assert world.telemetry.said("outcome not recorded")[0].fields["provider_reference"] == "message-1"


def test_a_second_delivery_is_counted_and_logged_with_both_its_names(world, gate):
    gate.on_call = Lever(lambda: world.worker().told(), operation=SEND_EMAIL)
    assert world.worker(gate).told().recorded == "second_delivery"
    assert world.telemetry.counts["DuplicateDelivery", KIND] == 1
    assert world.telemetry.counts["NoticeDelivered", KIND] == 1
    (line,) = world.telemetry.said("delivered twice")
    assert line.fields["provider_reference"] == "message-2"


def test_a_record_is_started_only_with_time_for_its_worst_case():
    from notices import database, mail, record

    one_call = database.ATTEMPTS * (database.CONNECT_SECONDS + database.READ_SECONDS)
    # of a retried event: the job, the notice, the claim, the requester, and each try of the outcome; and the mail
    longest = (4 + record.WRITE_TRIES) * one_call + mail.CONNECT_SECONDS + mail.READ_SECONDS
    assert longest <= WORST_CASE_SECONDS
