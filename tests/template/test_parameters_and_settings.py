"""What the template lets through, the functions can start with: a deploy must not stop what a parameter got wrong."""

from __future__ import annotations

import re

import pytest

from notices.settings import SettingsError, read
from template.resolve import Stack

ADDRESSES = [
    "notices@example.com",
    "Example Platform <notices@example.com>",
    '"Example, Inc." <notices@example.com>',
    "Example, Inc. <notices@example.com>",
    "Zoë <notices@example.com>",
    "notices@localhost",
    "a,b@example.com",
    '"open <notices@example.com>',
    "Ops, ops@x <notices@example.com>",
    "müller@example.com",
    "notices@bücher.example.com",
    "a" * 65 + "@example.com",
    "a..b@example.com",
    "notices@-example.com",
    "notices@" + "a" * 64 + ".com",
    "<notices@example.com>",
]
URLS = [
    "https://app.example.com",
    "http://localhost:8080/x",
    "https://app.example.com/base/",
    "https:///path",
    "https://app.example.com/it's",
    "https://bücher.example.com",
    "https://app.example.com?x=1",
    "https://app.example.com/#x",
    "https://app example.com",
    "ftp://app.example.com",
    "https://",
]
NUMBERS = [
    "0",
    "1",
    "28",
    "29",
    "59",
    "60",
    "72",
    "90",
    "120",
    "121",
    "336",
    "337",
    "600",
    "900",
    "901",
    "3650",
    "3651",
]
NUMBERS += ["14400", "14401", "1.5", "72.0", "1e2", " 72", "+72", "-1", "", "seventy", "٧٢"]

CANDIDATES = [
    *(("NoticeFromAddress", "NOTICE_FROM_ADDRESS", value) for value in ADDRESSES),
    *(("MailFromAddress", "MAIL_FROM_ADDRESS", value) for value in ADDRESSES),
    *(("HqBaseUrl", "HQ_BASE_URL", value) for value in URLS),
    *(("CustomerBaseUrl", "CUSTOMER_BASE_URL", value) for value in URLS),
    *(("ClaimLeaseSeconds", "CLAIM_LEASE_SECONDS", value) for value in NUMBERS),
    *(("UnknownGraceSeconds", "UNKNOWN_GRACE_SECONDS", value) for value in NUMBERS),
    *(("RetryHorizonHours", "RETRY_HORIZON_HOURS", value) for value in NUMBERS),
    *(("NoticeRetentionDays", "NOTICE_RETENTION_DAYS", value) for value in NUMBERS),
]


@pytest.mark.parametrize(("parameter", "variable", "value"), CANDIDATES)
def test_a_value_that_the_template_accepts_is_one_that_the_functions_accept(
    parameter: str, variable: str, value: str
) -> None:
    declared = Stack(SesIdentity="example.com").template["Parameters"][parameter]
    try:
        read({"AWS_REGION": "eu-west-1", variable: value}, required=())
    except SettingsError:
        assert not re.search(declared["AllowedPattern"], value)


@pytest.mark.parametrize("parameter", ["NoticeFromAddress", "HqBaseUrl", "RetryHorizonHours"])
def test_the_template_accepts_what_it_is_meant_for(parameter: str) -> None:
    declared = Stack(SesIdentity="example.com").template["Parameters"][parameter]
    meant = {"NoticeFromAddress": ADDRESSES[:5], "HqBaseUrl": URLS[:3], "RetryHorizonHours": ["1", "72", "336"]}
    assert all(re.search(declared["AllowedPattern"], value) for value in meant[parameter])
