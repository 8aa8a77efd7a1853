"""What an operator can run into, in one line that names the remedy; and the exit codes."""

from __future__ import annotations

from enum import IntEnum

from botocore import exceptions as sdk  # type: ignore[import-untyped]

from notices.database import DatabaseError
from notices.kind_files import KindError
from notices.queues import QueueError
from notices.settings import SettingsError
from notices_cli.spoilt import SpoiltNotice


class Exit(IntEnum):
    """The exit codes, as docs/cli.md and every `--help` have them."""

    DONE = 0
    FAULT = 1  # a check found a fault, or some of what was to be done was not
    USAGE = 2  # click's own
    AWS = 3
    REFUSED = 4
    INTERRUPTED = 130


EXIT_CODES = """\
Exit codes: 0 done or answered; 1 a fault was found, or something was not done; 2 the command line is wrong;
3 AWS could not be asked; 4 refused or declined, nothing was changed; 130 interrupted."""


class Trouble(Exception):
    """Something that ends the command: one line, with its remedy."""

    def __init__(self, message: str, remedy: str = "", code: Exit = Exit.AWS) -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.code = code


def refused(message: str, remedy: str = "") -> Trouble:
    """Return what ends a command that would not be safe or of use; nothing was changed."""
    return Trouble(message, remedy, Exit.REFUSED)


EXPECTED = (sdk.ClientError, sdk.BotoCoreError, DatabaseError, QueueError, SettingsError, KindError, SpoiltNotice)
"""What `explained` takes."""

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "AccessDeniedFault"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_NOT_VALID = {
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
    "AuthFailure",
    "IncompleteSignature",
}
_THROTTLED = {
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequestsException",
    "RequestLimitExceeded",
    "ProvisionedThroughputExceededException",
    "RequestThrottled",
    "SlowDown",
}
_NOT_THERE = {
    "ResourceNotFoundException",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
    "NotFoundException",
    "TableNotFoundException",
}


def explained(error: Exception) -> Trouble:
    """Return an error of AWS, of the SDK or of the settings as one line with its remedy."""
    if isinstance(error, DatabaseError):
        return _answered(error.code, f"{error.operation} on the table {error.table}", error.__cause__)
    if isinstance(error, QueueError):
        return _answered(str(error), "a call to the queue", error.__cause__)
    if isinstance(error, sdk.ClientError):
        return _answered(str(error.response.get("Error", {}).get("Code", "Unknown")), error.operation_name, error)
    if isinstance(error, SpoiltNotice):
        return refused(f"T{str(error)[1:]}.", "Somebody wrote to it by hand: correct it in the table first.")
    if isinstance(error, SettingsError | KindError):
        return Trouble(f"{error}.".replace("..", "."), "", Exit.FAULT)
    return _sdk(error)


def _answered(code: str, what: str, cause: object) -> Trouble:
    """AWS answered with an error code; or the SDK gave up, and the code is its exception's name."""
    if isinstance(cause, sdk.BotoCoreError):
        return _sdk(cause)
    if code in _DENIED:
        return Trouble(
            f"AWS denies {what} ({code}).", "Use a role that may do it: docs/cli.md lists what each command needs."
        )
    if code in _EXPIRED:
        return Trouble(
            "The AWS credentials have expired.", "Log in again (aws sso login), or choose another --profile."
        )
    if code in _NOT_VALID:
        return Trouble(f"AWS does not accept the credentials ({code}).", "Choose another --profile, or log in again.")
    if code in _THROTTLED:
        return Trouble(f"AWS throttles {what} ({code}).", "Wait a minute and repeat the command.")
    if code in _NOT_THERE:
        return Trouble(f"{what}: there is no such thing here ({code}).", "Check --stack, --region and the names given.")
    return Trouble(f"{what} failed: {code}.", "Repeat the command; if it stays so, see AWS's own description of it.")


def _sdk(error: BaseException) -> Trouble:
    name = type(error).__name__
    match error:
        case sdk.NoCredentialsError() | sdk.PartialCredentialsError() | sdk.CredentialRetrievalError():
            return Trouble(
                "There are no AWS credentials.", "Log in (aws sso login), choose a --profile, or set AWS_ACCESS_KEY_ID."
            )
        case sdk.SSOError() | sdk.TokenRetrievalError() | sdk.UnauthorizedSSOTokenError():
            return Trouble("The AWS login has expired.", "Log in again: aws sso login.")
        case sdk.ProfileNotFound():
            return Trouble(f"{error}.", "aws configure list-profiles shows those there are.")
        case sdk.NoRegionError():
            return Trouble("There is no region.", "Give --region, or set AWS_REGION.")
        case sdk.EndpointConnectionError() | sdk.ConnectTimeoutError() | sdk.ReadTimeoutError() | sdk.ConnectionError():
            endpoint = error.kwargs.get("endpoint_url", "AWS")
            return Trouble(
                f"Nobody answers at {endpoint} ({name}).",
                "Check --region and the network, or that make up runs where --endpoint-url points.",
            )
    return Trouble(f"The AWS SDK gave up: {name}.", "Check --profile, --region and --endpoint-url.")
