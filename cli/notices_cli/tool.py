"""The tool's collaborators: the tables, queues and clients of one stack, each made when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import boto3  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from pynamodb.connection.base import Connection as PynamoConnection

from notices.database import Connection, Table
from notices.jobs import JOB_KEYS, REQUESTER_KEYS
from notices.kinds import Catalogue, load_catalogue
from notices.queues import JobSettledQueue
from notices.record import NOTICE_KEYS, Clock, Notices, utc_now
from notices.settings import Settings, read
from notices_cli.dead_letters import DeadLetterQueue
from notices_cli.place import Place
from notices_cli.questions import Questions
from notices_cli.rehearsal import Rehearse
from notices_cli.sending import Switch
from notices_cli.trouble import EXPECTED, Trouble

CONNECT_SECONDS = 5
READ_SECONDS = 20
ATTEMPTS = 5  # by the SDK: a person waits, and throttling passes

_CONFIG = Config(
    connect_timeout=CONNECT_SECONDS,
    read_timeout=READ_SECONDS,
    retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
)


@dataclass(frozen=True, slots=True)
class Options:
    """How to reach the system, as the command line and the environment say."""

    stack: str
    region: str | None
    profile: str | None
    endpoint_url: str | None
    given: Mapping[str, str]
    typed: str = ""  # of these, what was typed: commands that the tool proposes end with it


@dataclass
class Tool:
    """What the commands work with."""

    place: Place
    connect: Callable[[], Connection]
    client: Callable[[str], Any]
    now: Clock = utc_now

    @cached_property
    def connection(self) -> Connection:
        """The tables' one connection."""
        return self.connect()

    @cached_property
    def kinds(self) -> Catalogue:
        """The kinds that this version of the project ships."""
        return load_catalogue()

    @cached_property
    def questions(self) -> Questions:
        """The questions to ask of the tables."""
        table, name = self._table, self.place.name
        return Questions(
            self.connection,
            notices=table(name("notices_table"), NOTICE_KEYS),
            jobs=table(name("jobs_table"), JOB_KEYS),
            requesters=table(name("requesters_table"), REQUESTER_KEYS),
        )

    @cached_property
    def dead_letters(self) -> DeadLetterQueue:
        """The dead-letter queue, to look at and to empty."""
        return DeadLetterQueue(self.client("sqs"), self.place.name("dead_letter_queue_url"))

    @cached_property
    def queue(self) -> JobSettledQueue:
        """The queue that events are sent to."""
        return JobSettledQueue(self.client("sqs"), self.place.name("queue_url"))

    @cached_property
    def switch(self) -> Switch:
        """What stops and starts sending."""
        return Switch(
            self.client("lambda"),
            self.client("events"),
            event_source_id=self.place.name("event_source_id"),
            rule=self.place.name("schedule_rule"),
        )

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """The environment of the deployed TellRequesterFunction."""
        answer = self.function
        variables: Mapping[str, str] = answer.get("Environment", {}).get("Variables", {})
        return {**variables, "AWS_REGION": self.place.region}

    @cached_property
    def function(self) -> Mapping[str, Any]:
        """The configuration of the deployed TellRequesterFunction."""
        answer: Mapping[str, Any] = self.client("lambda").get_function_configuration(
            FunctionName=self.place.name("tell_function")
        )
        return answer

    @cached_property
    def settings(self) -> Settings:
        """What the deployed function goes by. Raises SettingsError where it could not start with it."""
        return read(self.environment, required=())

    def notices(self, retention: timedelta) -> Notices:
        """The notices table, to write to."""
        return Notices(self.questions.notices, now=self.now, retention=retention)

    def rehearse(self) -> Rehearse:
        """What would become of a job now, without claiming or sending.

        Where the function's settings cannot be seen, the letter has no link; who is told, and whether, stays the same.
        """
        try:
            settings = self.settings
        except (Trouble, *EXPECTED):
            settings = read({"AWS_REGION": self.place.region}, required=())
        return Rehearse(self.kinds, self.questions, settings, self.now)

    def _table(self, name: str, keys: tuple[str, ...]) -> Table:
        return Table(self.connection, name, keys)


def open_tool(options: Options) -> Tool:
    """Return the tool for real AWS, or for whatever answers at the endpoint. Nothing is asked before it is needed."""
    session = _Session(options)
    place = Place(
        options.stack, lambda: session.region, options.endpoint_url, options.given, session.client, options.typed
    )
    return Tool(place, session.connection, session.client)


class _Session:
    """The chosen profile's session; `region` raises Trouble where none is said."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._clients: dict[str, Any] = {}

    @cached_property
    def _botocore(self) -> Any:
        return botocore.session.Session(profile=self._options.profile)

    @cached_property
    def region(self) -> str:
        region: str | None = self._options.region or self._botocore.get_config_variable("region")
        if not region:
            raise Trouble("There is no region.", "Give --region, or set AWS_REGION.")
        return region

    def client(self, service: str) -> Any:
        if service not in self._clients:
            session = boto3.session.Session(botocore_session=self._botocore, region_name=self.region)
            endpoint = self._options.endpoint_url
            try:
                self._clients[service] = session.client(service, endpoint_url=endpoint, config=_CONFIG)
            except ValueError as error:
                if endpoint is None:
                    raise
                raise Trouble(f"{endpoint} is no endpoint.", "Give --endpoint-url as make up says it.") from error
        return self._clients[service]

    def connection(self) -> Connection:
        return _Connection(self._botocore, self.region, self._options.endpoint_url)


class _Connection(PynamoConnection):
    """pynamodb's connection with the session of the chosen profile."""

    def __init__(self, session: Any, region: str, host: str | None) -> None:
        super().__init__(
            region=region,
            host=host,
            connect_timeout_seconds=CONNECT_SECONDS,
            read_timeout_seconds=READ_SECONDS,
            max_retry_attempts=ATTEMPTS - 1,
        )
        self._chosen = session

    @property
    def session(self) -> Any:
        """The session that makes the client."""
        return self._chosen
