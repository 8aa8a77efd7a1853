"""What this system writes to its queues (DESIGN 3.1, 3.6)."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import EndpointConnectionError

from fakes.gate import Lever, raising
from fakes.queues import DEAD_LETTERS_URL, QUEUE_URL, FakeSqs, sqs_error
from notices.event import JobSettled, parse
from notices.queues import ATTEMPTS, CALL_SECONDS, DeadLetters, JobSettledQueue, QueueError, Retry, client_config


@pytest.fixture
def sqs() -> FakeSqs:
    return FakeSqs()


def test_a_parked_message_says_why_and_where_it_came_from(sqs):
    DeadLetters(sqs, DEAD_LETTERS_URL).park("{", "not_json", "message-1")
    (message,) = sqs.queues.parked
    assert message.body == "{"
    assert message.attributes == {"reason": "not_json", "source_message_id": "message-1"}


@pytest.mark.parametrize("body", [None, ""])
def test_a_message_without_a_body_or_an_id_is_parked_all_the_same(sqs, body):
    DeadLetters(sqs, DEAD_LETTERS_URL).park(body, "not_json", None)
    (message,) = sqs.queues.parked
    assert message.body
    assert message.attributes["source_message_id"]


FAULTS = [sqs_error("AccessDenied"), EndpointConnectionError(endpoint_url="https://sqs.example")]


@pytest.mark.parametrize("fault", FAULTS, ids=["AccessDenied", "EndpointConnectionError"])
def test_a_message_that_cannot_be_parked_is_a_queue_error_that_names_the_code_alone(sqs, fault):
    sqs.queues.faults.append(fault)
    with pytest.raises(QueueError, match=r"^(AccessDenied|EndpointConnectionError)$"):
        DeadLetters(sqs, DEAD_LETTERS_URL).park("{", "not_json", "1")


def test_a_retry_is_an_event_that_our_own_parser_takes(sqs):
    assert JobSettledQueue(sqs, QUEUE_URL).send([Retry("team/42", "failed", 7)]) == 1
    (message,) = sqs.queues.sent
    assert parse(message.body) == JobSettled("team/42", "failed", retry=7)
    assert "kind" not in json.loads(message.body)


def test_ten_retries_go_in_one_call(sqs):
    retries = [Retry(f"job-{number}", "failed", 1) for number in range(10)]
    assert JobSettledQueue(sqs, QUEUE_URL).send(retries) == 10
    assert sqs.gate.calls == ["SendMessageBatch"]


def test_entries_that_sqs_refuses_are_not_counted(sqs):
    sqs.queues.refused_entries = {1}
    assert JobSettledQueue(sqs, QUEUE_URL).send([Retry("a", "failed", 1), Retry("b", "failed", 1)]) == 1


def test_when_all_entries_are_refused_none_is_counted(sqs):
    sqs.queues.refused_entries = {0}
    assert JobSettledQueue(sqs, QUEUE_URL).send([Retry("a", "failed", 1)]) == 0


@pytest.mark.parametrize("fault", FAULTS, ids=["AccessDenied", "EndpointConnectionError"])
def test_a_batch_that_cannot_be_sent_is_a_queue_error(sqs, fault):
    sqs.gate.on_call = Lever(raising(fault))
    with pytest.raises(QueueError):
        JobSettledQueue(sqs, QUEUE_URL).send([Retry("a", "failed", 1)])


def test_the_clients_time_outs_are_within_what_a_call_is_counted_for():
    config = client_config(pool=3)
    assert config.retries == {"total_max_attempts": ATTEMPTS, "mode": "standard"}
    assert (config.connect_timeout + config.read_timeout) * ATTEMPTS < CALL_SECONDS
    assert config.max_pool_connections == 3
