"""`notices check`: every fault is found, and named with its remedy; what is right is left in peace."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cli.operator import ALL_TYPES, Operator, refusal
from fakes.gate import Lever, raising
from fakes.mail import THROTTLED
from fakes.queues import DEAD_LETTERS_URL, QUEUE_URL
from fakes.store import refusal as store_refusal
from fakes.world import JOBS, NOTICES


@pytest.fixture
def operator() -> Operator:
    return Operator()


def test_a_stack_that_is_as_it_should_be_has_no_fault_and_no_note(operator):
    document = operator.asks("check")
    assert document["ok"] is True
    assert {each["level"] for each in document["findings"]} == {"ok"}
    assert {each["area"] for each in document["findings"]} == {
        "settings", "SES account", "SES identity", "SES events", "tables", "queues", "sending",
    }  # fmt: skip


def environment(**values):
    return lambda operator: operator.variables.update(values)


def account(**values):
    return lambda operator: operator.ses.account.update(values)


def queue(url, **values):
    return lambda operator: operator.sqs.attributes[url].update(values)


def index(**values):
    return lambda operator: operator.dynamo.tables[NOTICES]["GlobalSecondaryIndexes"][0].update(values)


FAULTS = {
    "an environment that is none": (environment(ENVIRONMENT=" production"), "which is none of"),
    "no from-address": (environment(NOTICE_FROM_ADDRESS=""), "no from-address"),
    "a from-address that is none": (environment(NOTICE_FROM_ADDRESS="notices"), "NOTICE_FROM_ADDRESS"),
    "a base URL with a query": (environment(HQ_BASE_URL="https://hq.example.com/?a=b"), "HQ_BASE_URL"),
    "a base URL without a scheme": (environment(CUSTOMER_BASE_URL="app.example.com"), "CUSTOMER_BASE_URL"),
    "the sandbox": (account(ProductionAccessEnabled=False), "sandbox"),
    "a paused account": (account(SendingEnabled=False), "paused for the account"),
    "a quota used up": (
        account(SendQuota={"Max24HourSend": 200.0, "MaxSendRate": 14.0, "SentLast24Hours": 200.0}),
        "quota is used up",
    ),
    "no identity": (lambda operator: operator.ses.identities.clear(), "no identity for n***@example.com"),
    "an identity that is not verified": (
        lambda operator: operator.ses.identities["example.com"].update(VerifiedForSendingStatus=False),
        "is not verified",
    ),
    "an identity that the function may not use": (
        lambda operator: operator.ses.identities.update({"notices@example.com": {"VerifiedForSendingStatus": True}}),
        "SES takes the identity n***@example.com",
    ),
    "no configuration set": (lambda operator: setattr(operator.ses, "configuration_set", None), "no configuration set"),
    "a configuration set that is off": (
        lambda operator: setattr(operator.ses, "configuration_set", {"SendingOptions": {"SendingEnabled": False}}),
        "switched off for the configuration set",
    ),
    "no table": (lambda operator: operator.dynamo.tables.pop(JOBS), "no table Jobs"),
    "a table with another key": (
        lambda operator: operator.dynamo.tables[JOBS].update(KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}]),
        "has the key id, not job_id",
    ),
    "no index": (
        lambda operator: operator.dynamo.tables[NOTICES].pop("GlobalSecondaryIndexes"),
        "index due is missing",
    ),
    "an index that projects too little": (index(Projection={"ProjectionType": "KEYS_ONLY"}), "does not project"),
    "an index with another key": (
        index(KeySchema=[{"AttributeName": "status", "KeyType": "HASH"}]),
        "has the key status, not",
    ),
    "a queue that shows messages too soon": (queue(QUEUE_URL, VisibilityTimeout="60"), "before its function ends"),
    "a queue without redrive": (queue(QUEUE_URL, RedrivePolicy=""), "does not lead to its dead-letter queue"),
    "no queue": (lambda operator: operator.sqs.attributes.pop(DEAD_LETTERS_URL), "no queue job-settled-dead-letters"),
    "sending that is paused": (lambda operator: setattr(operator.rules, "state", "DISABLED"), "sending is paused"),
    "an event source without partial answers": (
        lambda operator: operator.functions.source.update(FunctionResponseTypes=[]),
        "partial batch responses",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_with_its_remedy_and_makes_the_exit_code_one(operator, fault):
    break_it, words = FAULTS[fault]
    break_it(operator)
    document = operator.asks("check", code=1)
    faults = [each for each in document["findings"] if each["level"] == "fault"]
    assert document["ok"] is False
    assert any(words in each["says"] for each in faults), faults
    assert all(each["remedy"] for each in faults)


NOTES = {
    "staging": (environment(ENVIRONMENT="staging"), "no mail goes out"),
    "no base URL": (environment(HQ_BASE_URL=""), "carry no link"),
    "a base URL without TLS": (environment(HQ_BASE_URL="http://hq.example.com"), "not https"),
    "an account under review": (account(EnforcementStatus="PROBATION"), "probation"),
    "a quota nearly used up": (
        account(SendQuota={"Max24HourSend": 100.0, "MaxSendRate": 14.0, "SentLast24Hours": 90.0}),
        "90 of 100",
    ),
    "a send rate above SES's": (environment(SES_SEND_RATE="30"), "SesSendRate is 30, and SES takes 14 a second"),
    "the sandbox's send rate": (
        account(SendQuota={"Max24HourSend": 200.0, "MaxSendRate": 1.0, "SentLast24Hours": 0.0}),
        "SesSendRate is 14, and SES takes 1 a second",
    ),
    "more batches than the workers reckon with": (
        lambda operator: operator.functions.source.update(ScalingConfig={"MaximumConcurrency": 50}),
        "Together they may send 350 a second",
    ),
    "batches without a bound": (lambda operator: operator.functions.source.pop("ScalingConfig"), "as Lambda likes"),
    "parked feedback": (
        lambda operator: operator.feeds_back_in_vain(),
        "about 1 message lies on the dead-letter queue of feedback",
    ),
    "no DKIM": (lambda operator: operator.ses.identities["example.com"].pop("DkimAttributes"), "DKIM"),
    "events that do not come": (
        lambda operator: operator.ses.destinations[0].update(MatchingEventTypes=["SEND"]),
        "bounce, complaint",
    ),
    "an event destination that is off": (lambda operator: operator.ses.destinations[0].update(Enabled=False), "send"),
    "tracking": (
        lambda operator: operator.ses.destinations[0].update(MatchingEventTypes=[*ALL_TYPES, "CLICK"]),
        "click",
    ),
    "no expiry": (lambda operator: operator.dynamo.ttl.update(TimeToLiveStatus="DISABLED"), "do not expire"),
    "a short retention": (queue(QUEUE_URL, MessageRetentionPeriod="345600"), "for 4 days only"),
    "a dead-letter queue that forgets as soon": (
        queue(DEAD_LETTERS_URL, MessageRetentionPeriod="864000"),
        "gone at once",
    ),
    "a short visibility": (queue(QUEUE_URL, VisibilityTimeout="180"), "six times"),
    "parked messages": (lambda operator: operator.parks("{"), "dead-letter queue"),
}


@pytest.mark.parametrize("note", NOTES)
def test_what_stops_no_notice_is_a_note(operator, note):
    do_it, words = NOTES[note]
    do_it(operator)
    findings = operator.asks("check")["findings"]
    assert any(words in each["says"] and each["level"] == "note" for each in findings), findings
    assert not [each for each in findings if each["level"] == "fault"]


def test_outside_production_what_is_wrong_with_ses_is_a_note(operator):
    operator.variables["ENVIRONMENT"] = "staging"
    operator.ses.account["ProductionAccessEnabled"] = False
    operator.ses.identities.clear()
    assert operator.asks("check")["ok"] is True


def test_a_retry_that_is_late_is_noted(operator):
    operator.world.provider.script.append(THROTTLED)
    operator.world.worker().told()
    operator.waits(timedelta(hours=1))
    assert any("has been due for 5" in each["says"] for each in operator.asks("check")["findings"])


def test_what_may_not_be_seen_is_said_and_stops_no_other_check(operator):
    def denied() -> None:
        raise refusal("AccessDeniedException", "GetAccount")

    operator.ses.get_account = denied
    document = operator.asks("check", code=3)
    assert document["ok"] is False
    (unseen,) = [each for each in document["findings"] if each["level"] == "unseen"]
    assert (unseen["area"], "AWS denies GetAccount" in unseen["says"]) == ("SES account", True)
    assert document["findings"][-1]["area"] == "sending"


def test_a_notices_table_that_is_gone_is_a_fault_and_stops_no_other_check(operator):
    del operator.dynamo.tables[NOTICES]
    gone = store_refusal("Query", "ResourceNotFoundException", table=NOTICES)
    operator.gate.on_call = Lever(raising(gone), operation="Query")
    operator.rules.state = "DISABLED"
    findings = operator.asks("check", code=1)["findings"]
    faults = [each["says"] for each in findings if each["level"] == "fault"]
    assert faults[0] == "there is no table Notices"
    assert "sending is paused" in faults[1]
    (unseen,) = [each for each in findings if each["level"] == "unseen"]
    assert (unseen["area"], "Query on the table Notices" in unseen["says"]) == ("sending", True)


def workers(number, rate):
    def set_both(operator):
        operator.variables.update(MAXIMUM_CONCURRENCY=str(number), SES_SEND_RATE=str(rate))
        operator.functions.source.update(ScalingConfig={"MaximumConcurrency": number})
        operator.ses.account["SendQuota"]["MaxSendRate"] = 500.0

    return set_both


@pytest.mark.parametrize(
    ("deployed", "remedy"),
    [
        (environment(SES_SEND_RATE="30"), "Deploy with SesSendRate=14, or have SES's send rate raised."),
        (workers(50, 14), "Deploy with MaximumConcurrency=28."),
        (workers(2, 500), "Deploy with MaximumConcurrency=13, if many jobs settle at once."),
        (
            lambda operator: operator.functions.source.update(ScalingConfig={"MaximumConcurrency": 10}),
            "Deploy with MaximumConcurrency=10: the deploy sets both.",
        ),
    ],
)
def test_a_send_rate_that_does_not_fit_says_what_to_set(deployed, remedy):
    operator = Operator()
    deployed(operator)
    notes = [each for each in operator.asks("check")["findings"] if each["level"] == "note"]
    assert [each["remedy"] for each in notes] == [remedy]


def test_a_send_rate_below_that_of_ses_is_right_and_said_to_be_low(operator):
    operator.ses.account["SendQuota"]["MaxSendRate"] = 80.0
    says = [each["says"] for each in operator.asks("check")["findings"] if each["level"] == "ok"]
    assert any(each.startswith("notices go out at 14 of the 80 a second that SES takes: SesSend") for each in says)


def test_a_setting_that_is_wrong_is_named_once(operator):
    operator.variables["NOTICE_FROM_ADDRESS"] = "notices"
    findings = operator.asks("check", code=1)["findings"]
    assert [each["area"] for each in findings if "NOTICE_FROM_ADDRESS" in each["says"]] == ["settings"]


def test_a_configuration_set_that_is_off_is_switched_on_by_the_command_that_is_shown(operator):
    operator.ses.configuration_set = {"SendingOptions": {"SendingEnabled": False}}
    (fault,) = [each for each in operator.asks("check", code=1)["findings"] if each["level"] == "fault"]
    assert fault["remedy"].endswith(
        "put-configuration-set-sending-options --sending-enabled --configuration-set-name mail"
    )


def test_where_the_function_may_not_be_seen_the_rest_is_looked_at(operator):
    operator.functions.fault = refusal("AccessDeniedException", "GetFunctionConfiguration")
    operator.sqs.attributes[QUEUE_URL]["RedrivePolicy"] = ""
    findings = operator.asks("check", code=1)["findings"]
    assert any("production access" in each["says"] for each in findings)
    assert any("does not lead to its dead-letter queue" in each["says"] for each in findings)


def test_quiet_shows_what_needs_a_look_alone(operator):
    operator.variables["HQ_BASE_URL"] = ""
    text = operator.types("check", "--quiet").output
    assert "HQ_BASE_URL is not set" in text
    assert "CUSTOMER_BASE_URL" not in text


def test_it_shows_no_address(operator):
    assert "notices@" not in json.dumps(operator.asks("check"))
