"""Envelopes, broken bodies, odd records and duplicates on the job.settled queue."""

from cases.run import Run, runs
from cases.wire import error
from fakes import ses_server

NO_PARKING = error("AccessDeniedException", 403)


@runs("EV-01")
def test_an_event_in_an_sns_envelope_is_told_like_a_bare_one(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"NoticeDelivered": 2}
    assert run.stage.output.total("NoticeDelivered", "workspace_provisioning") == 2
    seconds = run.stage.output.values("SecondsToTell")
    assert len(seconds) == 2
    assert all(30 <= each < 60 for each in seconds)


@runs("EV-01")
def test_the_spelling_of_an_sns_key_plays_no_part(run: Run) -> None:
    envelope = run.event["Records"][1]
    assert "SigningCertURL" in envelope["body"]
    envelope["body"] = envelope["body"].replace("SigningCertURL", "SigningCertUrl")
    run.play()
    run.check()


@runs("EV-02")
def test_an_eventbridge_detail_may_be_an_object_or_a_string_and_a_replay_is_already_handled(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"NoticeDelivered": 2, "NoticeAlreadyHandled": 1}


@runs("EV-04-a", "EV-04-b")
def test_a_broken_body_is_parked_or_reported_and_its_neighbours_are_told(run: Run) -> None:
    deep = run.add_record("[" * 100_000)
    if run.letter == "b":
        run.stage.wire.on("SendMessage", NO_PARKING)
    run.play()
    if run.letter == "b":
        run.check(failures=[deep])
        assert run.counted == {"NoticeDelivered": 2}
    else:
        run.check(parked=[(deep, "not_json")])
        assert run.counted == {"NoticeDelivered": 2, "EventParked": 2}


@runs("EV-06")
def test_a_byte_order_mark_and_white_space_around_the_json_are_dropped(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"NoticeDelivered": 2}


@runs("EV-08-a")
def test_a_broken_record_without_a_message_id_is_parked_under_a_placeholder(run: Run) -> None:
    run.play()
    run.check()


@runs("EV-08-b")
def test_a_record_without_a_message_id_that_cannot_be_parked_brings_the_batch_back_with_nothing_sent_twice(
    run: Run,
) -> None:
    run.stage.wire.on("SendMessage", NO_PARKING)
    run.play()
    run.check()

    run.stage.wire.clear()
    run.play()
    run.check({"failures": [], "ses_calls": 0})
    assert run.counted["NoticeAlreadyHandled"] == 1


@runs("EV-09-a")
def test_duplicates_in_one_batch_are_told_once(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"NoticeDelivered": 1, "NoticeAlreadyHandled": 2}


@runs("EV-09-b")
def test_duplicates_of_a_notice_that_was_refused_claim_it_again_each(run: Run) -> None:
    run.stage.ses.otherwise(ses_server.error("MessageRejected", 400, "Message rejected: its content is not wanted"))
    run.play()
    run.check()
    assert run.results() == ["failed"] * 3
    assert run.counted == {"NoticeFailed": 3, "NoticeFailedForGood": 3}
