"""The one place that builds the real thing: settings, connection, clients, and what a handler calls.

Everything is made once, at init, on the main thread: botocore's clients are lazy and not safe to create in threads,
and a second session or a second connection would cost half a cold start each (DESIGN 5). What one function alone
needs is imported where that one is built.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.config import Config  # type: ignore[import-untyped]
from pynamodb.connection.base import Connection

from notices import database, queues
from notices.batch import Batch, Context, in_order
from notices.database import Table
from notices.record import NOTICE_KEYS, Notices, utc_now
from notices.settings import MAIL_VARIABLES, SERVICE, Settings, read
from notices.telemetry import PowertoolsTelemetry
from notices.trust import TrustStore

if TYPE_CHECKING:
    from notices import untold
    from notices.kinds import Catalogue

THREADS = 10  # as many as a batch has records

_TRUST = TrustStore()

Handler = Callable[[dict[str, Any], Any], Any]


def tell_requester(environ: Mapping[str, str] = os.environ) -> Handler:
    """Return what `TellRequesterFunction` calls. Raises SettingsError, naming every fault."""
    from notices.backoff import Backoff
    from notices.jobs import JOB_KEYS, REQUESTER_KEYS, Jobs, Requesters
    from notices.lookups import ReadTogether
    from notices.mail import Mail, ses_client_config
    from notices.message import BaseUrls
    from notices.pace import Pace
    from notices.processor import stay_on_one
    from notices.receive import ReceiveJobSettled
    from notices.tell import WORST_CASE_SECONDS, Tell

    settings = read(
        environ,
        required=(
            "NOTICES_TABLE",
            "JOBS_TABLE",
            "REQUESTERS_TABLE",
            "JOB_SETTLED_DEAD_LETTER_QUEUE_URL",
            "MAIL_CONFIGURATION_SET",
        ),
    )
    telemetry = _telemetry(environ)
    if not settings.sends_mail:
        telemetry.warning(
            "mail is suppressed: ENVIRONMENT is not exactly 'production'",
            environment=settings.environment or "(unset)",
        )
    elif settings.sender is None:
        telemetry.error("no mail can be sent: neither NOTICE_FROM_ADDRESS nor MAIL_FROM_ADDRESS is set")
    connection = _connection(settings)
    jobs = Table(connection, settings.jobs_table, JOB_KEYS)
    requesters = Table(connection, settings.requesters_table, REQUESTER_KEYS)
    notices = Table(connection, settings.notices_table, NOTICE_KEYS)
    tell = Tell(
        kinds=_kinds(telemetry),
        jobs=Jobs(jobs),
        requesters=Requesters(requesters),
        notices=_notices(notices, settings),
        mail=Mail(
            _client(connection, "sesv2", ses_client_config(THREADS)),
            sender=settings.sender,
            configuration_set=settings.configuration_set,
            pace=Pace(settings.sends_per_second),
        ),
        base_urls=BaseUrls(staff=settings.hq_base_url, customer=settings.customer_base_url),
        sends_mail=settings.sends_mail,
        backoff=Backoff(settings.unknown_grace),
        telemetry=telemetry,
        now=utc_now,
    )
    dead_letters = queues.DeadLetters(
        _client(connection, "sqs", queues.client_config(THREADS)), settings.dead_letter_queue_url
    )
    read_together = ReadTogether(connection, jobs, requesters, notices, telemetry)
    stay_on_one(environ)
    pool = ThreadPoolExecutor(THREADS + 1, "notices")  # the requesters are read beside the records
    receive = ReceiveJobSettled(tell, read_together, pool, dead_letters, telemetry)
    return _invocation(telemetry, Batch(receive, worst_case=WORST_CASE_SECONDS, telemetry=telemetry, pool=pool))


def retry_due_notices(environ: Mapping[str, str] = os.environ) -> Handler:
    """Return what `RetryDueNoticesFunction` calls. Raises SettingsError, naming every fault."""
    from notices.retry import Due, RetryDueNotices

    settings = read(environ, required=("NOTICES_TABLE", "JOB_SETTLED_QUEUE_URL"), unused=MAIL_VARIABLES)
    telemetry = _telemetry(environ)
    connection = _connection(settings)
    notices_table = Table(connection, settings.notices_table, NOTICE_KEYS)
    retry = RetryDueNotices(
        due=Due(notices_table, utc_now),
        notices=Notices(notices_table, now=utc_now, retention=settings.retention),
        queue=queues.JobSettledQueue(
            _client(connection, "sqs", queues.client_config(THREADS)), settings.job_settled_queue_url
        ),
        horizon=settings.retry_horizon,
        telemetry=telemetry,
        now=utc_now,
    )

    def run(_event: dict[str, Any], context: Context) -> None:
        retry(lambda: context.get_remaining_time_in_millis() / 1000)

    return _invocation(telemetry, run)


def record_feedback(environ: Mapping[str, str] = os.environ) -> Handler:
    """Return what `RecordFeedbackFunction` calls. Raises SettingsError, naming every fault."""
    from notices.feedback import RecordFeedback
    from notices.receive_feedback import ReceiveFeedback

    settings = read(environ, required=("NOTICES_TABLE",), unused=MAIL_VARIABLES)
    telemetry = _telemetry(environ)
    record = RecordFeedback(
        _notices(Table(_connection(settings), settings.notices_table, NOTICE_KEYS), settings), telemetry, utc_now
    )
    receive = ReceiveFeedback(record, telemetry)
    worst_case = 2 * database.CALL_SECONDS
    return _invocation(telemetry, Batch(in_order(receive), worst_case=worst_case, telemetry=telemetry))


def find_untold(environ: Mapping[str, str] = os.environ) -> Handler:
    """Return what `FindUntoldFunction` calls. Raises SettingsError, naming every fault."""
    from notices import untold

    settings = read(environ, required=("NOTICES_TABLE", "JOBS_TABLE"), unused=MAIL_VARIABLES)
    telemetry = _telemetry(environ)
    connection = _connection(settings)
    kinds = _kinds(telemetry)
    find = untold.FindUntold(
        source=_source(settings, connection, kinds),
        connection=connection,
        notices_table=Table(connection, settings.notices_table, NOTICE_KEYS),
        kinds=kinds,
        telemetry=telemetry,
        now=utc_now,
    )

    def run(_event: dict[str, Any], context: Context) -> None:
        find(lambda: context.get_remaining_time_in_millis() / 1000)

    return _invocation(telemetry, run)


def _source(settings: Settings, connection: Connection, kinds: Catalogue) -> untold.Source | None:
    from notices import untold
    from notices.jobs import JOB_KEYS

    if settings.untold_check == "off":
        return None
    jobs_table = Table(connection, settings.jobs_table, JOB_KEYS)
    if settings.untold_check == "index":
        return untold.IndexSource(jobs_table, settings.settled_jobs_index, kinds)
    bookmarks = Table(connection, settings.untold_bookmark_table, untold.BOOKMARK_KEYS)
    return untold.ScanSource(jobs_table, untold.Bookmark(bookmarks))


def _telemetry(environ: Mapping[str, str]) -> PowertoolsTelemetry:
    return PowertoolsTelemetry(environ.get("POWERTOOLS_SERVICE_NAME") or SERVICE)


def _kinds(telemetry: PowertoolsTelemetry) -> Catalogue:
    """Load the kinds. The build refuses a broken one; one that gets here all the same stops no other."""
    from notices.kinds import load_catalogue

    catalogue = load_catalogue()
    for broken in catalogue.broken:
        telemetry.error(
            "a kind is broken: its notices fail until it is mended", kind=broken.name, fault=str(broken.fault)
        )
    return catalogue


def _connection(settings: Settings) -> Connection:
    connection = Connection(
        region=settings.region,
        connect_timeout_seconds=database.CONNECT_SECONDS,
        read_timeout_seconds=database.READ_SECONDS,
        max_retry_attempts=database.ATTEMPTS - 1,
        max_pool_connections=THREADS + 1,
    )
    _TRUST.share_with(connection.client)  # made now, on the main thread, and not at the first notice
    return connection


def _client(connection: Connection, service: str, config: Config) -> Any:
    client = connection.session.create_client(service, region_name=connection.region, config=config)
    _TRUST.share_with(client)
    return client


def _notices(table: Table, settings: Settings) -> Notices:
    return Notices(
        table,
        now=utc_now,
        retention=settings.retention,
        claim_lease=settings.claim_lease,
    )


def _invocation(telemetry: PowertoolsTelemetry, handle: Handler) -> Handler:
    """Give each invocation its request id, and write its metrics whatever happens."""

    def invoke(event: dict[str, Any], context: Any) -> Any:
        telemetry.begin(getattr(context, "aws_request_id", None))
        try:
            return handle(event, context)
        finally:
            telemetry.flush()

    return invoke
