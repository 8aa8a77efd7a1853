"""Settings are read once, and every fault is named at once (DESIGN 3.7)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from notices.settings import SettingsError, read

ENVIRON = {
    "AWS_REGION": "eu-west-1",
    "ENVIRONMENT": "production",
    "NOTICES_TABLE": "Notices",
    "JOBS_TABLE": "Jobs",
    "REQUESTERS_TABLE": "Requesters",
    "JOB_SETTLED_QUEUE_URL": "https://sqs.example/queue",
    "JOB_SETTLED_DEAD_LETTER_QUEUE_URL": "https://sqs.example/dead",
    "NOTICE_FROM_ADDRESS": "notices@example.com",
    "MAIL_FROM_ADDRESS": "mail@example.com",
    "MAIL_CONFIGURATION_SET": "mail",
    "HQ_BASE_URL": "https://hq.example.com/",
    "CUSTOMER_BASE_URL": "https://app.example.com/base",
    "CLAIM_LEASE_SECONDS": "60",
    "UNKNOWN_GRACE_SECONDS": "700",
    "RETRY_HORIZON_HOURS": "24",
    "NOTICE_RETENTION_DAYS": "30",
}


def settings(required=(), **changes):
    return read({name: value for name, value in {**ENVIRON, **changes}.items() if value is not None}, required=required)


def fault(required=(), **changes) -> str:
    with pytest.raises(SettingsError) as raised:
        settings(required, **changes)
    return str(raised.value)


def test_everything_is_read():
    found = settings()
    assert found.region == "eu-west-1"
    assert (found.notices_table, found.jobs_table, found.requesters_table) == ("Notices", "Jobs", "Requesters")
    assert (found.job_settled_queue_url, found.dead_letter_queue_url) == (
        "https://sqs.example/queue",
        "https://sqs.example/dead",
    )
    assert (found.sender, found.configuration_set) == ("notices@example.com", "mail")
    assert (found.hq_base_url, found.customer_base_url) == ("https://hq.example.com", "https://app.example.com/base")
    assert (found.claim_lease, found.unknown_grace) == (timedelta(seconds=60), timedelta(seconds=700))
    assert (found.retry_horizon, found.retention) == (timedelta(hours=24), timedelta(days=30))


def test_what_is_not_set_has_the_designs_values():
    found = read({"AWS_REGION": "eu-west-1"}, required=())
    assert found.claim_lease == timedelta(0)
    assert found.unknown_grace == timedelta(seconds=600)
    assert found.retry_horizon == timedelta(hours=72)
    assert found.retention == timedelta(days=90)
    assert found.sender is None
    assert (found.hq_base_url, found.customer_base_url) == (None, None)
    assert (found.untold_check, found.sends_mail) == ("off", False)


def test_every_fault_is_named_at_once():
    message = fault(
        ("NOTICES_TABLE", "JOBS_TABLE"),
        AWS_REGION=None,
        NOTICES_TABLE="",
        JOBS_TABLE=" ",
        NOTICE_FROM_ADDRESS="not an address",
        MAIL_FROM_ADDRESS="a@example.com, b@example.com",
        HQ_BASE_URL="hq.example.com",
        CUSTOMER_BASE_URL="https://app.example.com/?q=1",
        CLAIM_LEASE_SECONDS="901",
        UNKNOWN_GRACE_SECONDS="0",
        RETRY_HORIZON_HOURS="many",
        NOTICE_RETENTION_DAYS="1",
        UNTOLD_CHECK="sometimes",
    )
    for name in (
        "AWS_REGION",
        "NOTICES_TABLE",
        "JOBS_TABLE",
        "NOTICE_FROM_ADDRESS",
        "MAIL_FROM_ADDRESS",
        "HQ_BASE_URL",
        "CUSTOMER_BASE_URL",
        "CLAIM_LEASE_SECONDS",
        "UNKNOWN_GRACE_SECONDS",
        "RETRY_HORIZON_HOURS",
        "NOTICE_RETENTION_DAYS",
        "UNTOLD_CHECK",
    ):
        assert name in message
    assert "\n" not in message


def test_only_what_a_function_needs_has_to_be_there():
    assert settings(NOTICES_TABLE=None).notices_table == ""
    assert fault(("NOTICES_TABLE",), NOTICES_TABLE=None) == "settings: NOTICES_TABLE is not set"


@pytest.mark.parametrize(
    ("notice", "mail", "sender"),
    [
        ("notices@example.com", "mail@example.com", "notices@example.com"),
        (None, "mail@example.com", "mail@example.com"),
        ("", "mail@example.com", "mail@example.com"),
        ("  ", "mail@example.com", "mail@example.com"),
        ("notices@example.com", None, "notices@example.com"),
        (None, None, None),
        ("", " ", None),
        ("Notices <notices@example.com>", None, "Notices <notices@example.com>"),
    ],
)
def test_the_sender_is_the_notice_address_else_the_mail_address(notice, mail, sender):
    assert settings(NOTICE_FROM_ADDRESS=notice, MAIL_FROM_ADDRESS=mail).sender == sender


@pytest.mark.parametrize(
    ("environment", "sends"),
    [
        ("production", True),
        ("prod", False),
        ("PRODUCTION", False),
        (" production ", False),
        ("production\n", False),
        ("staging", False),
        ("", False),
        (None, False),
    ],
)
def test_only_the_exact_word_production_sends(environment, sends):
    assert settings(ENVIRONMENT=environment).sends_mail is sends


@pytest.mark.parametrize("value", ["-1", "1.5", "1e2", "٣", "0x10", "1_0", "ten", "9" * 5000])
def test_a_number_is_whole_and_in_ascii_digits(value):
    assert "CLAIM_LEASE_SECONDS" in fault(CLAIM_LEASE_SECONDS=value)


def test_a_lease_of_zero_and_of_900_is_allowed():
    assert settings(CLAIM_LEASE_SECONDS="0").claim_lease == timedelta(0)
    assert settings(CLAIM_LEASE_SECONDS="900").claim_lease == timedelta(seconds=900)


def test_retention_outlasts_queue_and_dead_letter_queue():
    assert "NOTICE_RETENTION_DAYS" in fault(NOTICE_RETENTION_DAYS="28")


@pytest.mark.parametrize(
    "url",
    [
        "app.example.com",
        "ftp://app.example.com",
        "https://",
        "https:///path",
        "javascript:alert(1)",
        "https://app.example.com/#top",
        "https://app.example.com/a b",
        'https://app.example.com/"',
        "https://bücher.example",
    ],
)
def test_a_base_url_is_a_plain_web_address(url):
    assert "CUSTOMER_BASE_URL" in fault(CUSTOMER_BASE_URL=url)


def test_the_fallback_region_is_used_and_a_missing_one_is_a_fault():
    assert settings(AWS_REGION=None, AWS_DEFAULT_REGION="eu-central-1").region == "eu-central-1"
    assert fault(AWS_REGION=None) == "settings: AWS_REGION is not set"
