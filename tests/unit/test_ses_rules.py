"""The local SES refuses what SES does."""

from __future__ import annotations

from demo.ses_rules import pause_refusal


def test_a_configuration_set_that_is_off_sends_nothing() -> None:
    refusal = pause_refusal({"ConfigurationSetName": "mail", "SendingOptions": {"SendingEnabled": False}})
    assert refusal is not None
    assert (refusal.status, refusal.code) == (400, "SendingPausedException")


def test_one_that_is_on_or_says_nothing_of_it_sends() -> None:
    assert pause_refusal({"ConfigurationSetName": "mail", "SendingOptions": {"SendingEnabled": True}}) is None
    assert pause_refusal({"ConfigurationSetName": "mail"}) is None
