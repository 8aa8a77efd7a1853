"""Settings: read once at start, every fault named at once (DESIGN 3.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from notices.mail import mailbox

PRODUCTION = "production"
SERVICE = "requester-notices"

_T = TypeVar("_T")


class SettingsError(Exception):
    """One or more environment variables are missing or wrong; the message names every one of them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says. A function asks for what it needs; the rest may be absent."""

    region: str
    environment: str
    notices_table: str
    jobs_table: str
    requesters_table: str
    job_settled_queue_url: str
    dead_letter_queue_url: str
    sender: str | None  # one RFC 5322 mailbox; None: neither address is set, met per notice as `sender_unset`
    configuration_set: str
    hq_base_url: str | None
    customer_base_url: str | None
    claim_lease: timedelta
    unknown_grace: timedelta
    retry_horizon: timedelta
    retention: timedelta
    ses_send_rate: int
    maximum_concurrency: int
    untold_check: str = "off"
    settled_jobs_index: str = ""
    untold_bookmark_table: str = ""

    @property
    def sends_mail(self) -> bool:
        """Only the exact word sends: a copy of production under any other name must not (DESIGN 3.5)."""
        return self.environment == PRODUCTION

    @property
    def sends_per_second(self) -> float:
        """One worker's share of the send rate."""
        return self.ses_send_rate / self.maximum_concurrency


MAIL_VARIABLES = (
    "NOTICE_FROM_ADDRESS",
    "MAIL_FROM_ADDRESS",
    "HQ_BASE_URL",
    "CUSTOMER_BASE_URL",
    "SES_SEND_RATE",
    "MAXIMUM_CONCURRENCY",
)

_UNTOLD_NEEDS = {"index": ("SETTLED_JOBS_INDEX",), "scan": ("UNTOLD_BOOKMARK_TABLE",)}


def read(environ: Mapping[str, str], *, required: tuple[str, ...], unused: tuple[str, ...] = ()) -> Settings:
    """Return the settings in `environ`.

    `required` names the variables that this function cannot do without, `unused` those that are not even looked at:
    a fault in the mail's settings must not stop the retry.

    Raises:
        SettingsError: naming every variable that is missing or wrong, and what would be right.
    """
    faults: list[str] = []

    def text(name: str) -> str:
        value = "" if name in unused else environ.get(name, "").strip()
        if not value and name in required:
            faults.append(f"{name} is not set")
        return value

    def checked(name: str, check: Callable[[str], _T], absent: _T) -> _T:
        value = text(name)
        if not value:
            return absent
        try:
            return check(value)
        except ValueError as error:
            faults.append(f"{name}: {error}")
            return absent

    def whole(name: str, default: int, least: int, most: int) -> int:
        return checked(name, lambda value: _whole(value, least, most), default)

    untold_check = checked("UNTOLD_CHECK", _untold_check, "off")
    required = (*required, *_UNTOLD_NEEDS.get(untold_check, ()))
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ""
    if not region:
        faults.append("AWS_REGION is not set")
    settings = Settings(
        region=region,
        # as it is: " production " is not production
        environment=environ.get("ENVIRONMENT", ""),
        notices_table=text("NOTICES_TABLE"),
        jobs_table=text("JOBS_TABLE"),
        requesters_table=text("REQUESTERS_TABLE"),
        job_settled_queue_url=text("JOB_SETTLED_QUEUE_URL"),
        dead_letter_queue_url=text("JOB_SETTLED_DEAD_LETTER_QUEUE_URL"),
        sender=_first(checked("NOTICE_FROM_ADDRESS", mailbox, None), checked("MAIL_FROM_ADDRESS", mailbox, None)),
        configuration_set=text("MAIL_CONFIGURATION_SET"),
        hq_base_url=checked("HQ_BASE_URL", _base_url, None),
        customer_base_url=checked("CUSTOMER_BASE_URL", _base_url, None),
        claim_lease=timedelta(seconds=whole("CLAIM_LEASE_SECONDS", 0, 0, 900)),
        unknown_grace=timedelta(seconds=whole("UNKNOWN_GRACE_SECONDS", 600, 1, 86_400)),
        retry_horizon=timedelta(hours=whole("RETRY_HORIZON_HOURS", 72, 1, 24 * 30)),
        retention=timedelta(days=whole("NOTICE_RETENTION_DAYS", 90, 29, 3650)),
        ses_send_rate=whole("SES_SEND_RATE", 14, 1, 100_000),
        maximum_concurrency=whole("MAXIMUM_CONCURRENCY", 2, 1, 1000),
        untold_check=untold_check,
        settled_jobs_index=text("SETTLED_JOBS_INDEX"),
        untold_bookmark_table=text("UNTOLD_BOOKMARK_TABLE"),
    )
    if faults:
        raise SettingsError("settings: " + "; ".join(faults))
    return settings


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value), None)


def _whole(value: str, least: int, most: int) -> int:
    # ASCII digits alone: int() would also take "1_0", " 5" and other scripts' digits
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise ValueError(f"must be a whole number from {least} to {most}")
    return int(value)


def _base_url(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not separator or not host:
        raise ValueError("must be an http or https URL such as https://app.example.com")
    if any(character in value for character in "?# \"'<>\\") or not value.isascii() or not value.isprintable():
        raise ValueError("must be a plain URL without query, fragment or spaces")
    return value.rstrip("/")


def _untold_check(value: str) -> str:
    if value not in ("off", "index", "scan"):
        raise ValueError("must be off, index or scan")
    return value
