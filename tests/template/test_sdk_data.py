"""The SDK's data in the layer: what the functions call, and nothing of that missing (layers/dependencies/slim.py)."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import botocore
import botocore.loaders
import botocore.session
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from integration.calls import observed
from scripts.template import ROOT

SLIM = ROOT / "layers" / "dependencies" / "slim.py"
REGIONS = ["eu-west-1", "us-east-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1", "ap-southeast-5"]
NUMBER = {"N": "1"}
ARGUMENTS: dict[tuple[str, str], dict[str, Any]] = {
    ("dynamodb", "BatchGetItem"): {"RequestItems": {"T": {"Keys": [{"k": {"S": "a"}}], "ConsistentRead": True}}},
    ("dynamodb", "GetItem"): {"TableName": "T", "Key": {"k": {"S": "a"}}, "ConsistentRead": True},
    ("dynamodb", "PutItem"): {
        "TableName": "T",
        "Item": {"k": {"S": "a"}, "n": NUMBER, "l": {"L": [{"M": {"x": {"BOOL": True}}}]}},
        "ConditionExpression": "attribute_not_exists(k)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        "ReturnConsumedCapacity": "TOTAL",
    },
    ("dynamodb", "UpdateItem"): {
        "TableName": "T",
        "Key": {"k": {"S": "a"}},
        "UpdateExpression": "SET #a = :a",
        "ExpressionAttributeNames": {"#a": "a"},
        "ExpressionAttributeValues": {":a": NUMBER},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    },
    ("dynamodb", "Query"): {"TableName": "T", "IndexName": "due", "KeyConditionExpression": "a = b", "Limit": 10},
    ("dynamodb", "Scan"): {"TableName": "T", "Limit": 10, "ExclusiveStartKey": {"k": {"S": "a"}}},
    ("sqs", "SendMessage"): {
        "QueueUrl": "https://sqs.eu-west-1.amazonaws.com/1/q",
        "MessageBody": "b",
        "MessageAttributes": {"reason": {"DataType": "String", "StringValue": "not_json"}},
    },
    ("sqs", "SendMessageBatch"): {
        "QueueUrl": "https://sqs.eu-west-1.amazonaws.com/1/q",
        "Entries": [{"Id": "0", "MessageBody": "b"}],
    },
    ("sesv2", "SendEmail"): {
        "FromEmailAddress": "a@example.com",
        "Destination": {"ToAddresses": ["b@example.com"]},
        "Content": {
            "Simple": {
                "Subject": {"Data": "s", "Charset": "UTF-8"},
                "Body": {"Text": {"Data": "t"}, "Html": {"Data": "h"}},
                "Headers": [{"Name": "Auto-Submitted", "Value": "auto-generated"}],
            }
        },
        "EmailTags": [{"Name": "n", "Value": "v"}],
        "ConfigurationSetName": "c",
    },
}
ANSWERS: dict[str, Any] = {
    "dynamodb": {
        "Item": {"k": {"S": "a"}},
        "Items": [{"k": {"S": "a"}}],
        "Responses": {"T": [{"k": {"S": "a"}}]},
        "UnprocessedKeys": {"T": {"Keys": [{"k": {"S": "b"}}]}},
        "LastEvaluatedKey": {"k": {"S": "a"}},
    },
    "sqs": {"MessageId": "1", "Successful": [{"Id": "0", "MessageId": "1"}], "Failed": [{"Id": "1", "Code": "x"}]},
    "sesv2": {"MessageId": "1"},
}
ERRORS: dict[str, dict[str, Any]] = {
    "dynamodb": {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "no",
        "Item": {"k": {"S": "a"}},
    },
    "sqs": {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"},
    "sesv2": {"message": "no", "code": "TooManyRequestsException"},
}


@pytest.fixture(scope="module")
def slim() -> ModuleType:
    spec = importlib.util.spec_from_file_location("slim", SLIM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def whole(folder: Path, slim: ModuleType) -> Path:
    """The SDK's own data, as the layer's build finds it; of the services that go anyhow, one."""
    source, data = Path(botocore.__file__).parent / "data", folder / "data"
    data.mkdir()
    for name in (*slim.OPERATIONS, "sts"):
        shutil.copytree(source / name, data / name)
    for path in source.glob("*.json"):
        shutil.copy(path, data)
    return data


@pytest.fixture(scope="module")
def data(slim: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = whole(tmp_path_factory.mktemp("slim"), slim)
    slim.main(made)
    return made


def spoken(data: Path | None, service: str, operation: str, region: str, status: int, answer: Any) -> Any:
    """What a client with this data sends, and what it makes of the answer; with the SDK's own data for None."""
    session = botocore.session.Session()
    session.set_credentials("a", "b")
    if data is not None:
        loader = botocore.loaders.Loader(extra_search_paths=[str(data)], include_default_search_paths=False)
        session.register_component("data_loader", loader)
    client = session.create_client(service, region, config=Config(retries={"total_max_attempts": 1}))
    sent: list[Any] = []

    class Body:
        def stream(self, *_args: Any, **_kwargs: Any) -> Any:
            yield json.dumps(answer).encode()

    def answered(request: Any, **_: Any) -> AWSResponse:
        sent.append((request.method, request.url, request.body, request.headers.get("X-Amz-Target")))
        headers = {"x-amzn-ErrorType": answer["code"]} if "code" in answer else {}
        return AWSResponse(request.url, status, headers, Body())

    client.meta.events.register("before-send", answered)
    try:
        said = client._make_api_call(operation, ARGUMENTS[service, operation])
    except client.exceptions.ClientError as error:
        said = {"error": type(error).__name__, **error.response}
    client.close()
    return sent, said


def test_the_data_is_cut_to_the_operations_that_the_functions_were_seen_to_call(slim: ModuleType) -> None:
    services = {"ses": "sesv2"}
    called = {
        (services.get(service, service), operation)
        for uses in observed().values()
        for service, operation in (use.action.split(":") for use in uses)
    }
    kept = {(service, operation) for service, operations in slim.OPERATIONS.items() for operation in operations}
    # one permission stands for both of SQS's ways to send
    assert kept - {("sqs", "SendMessageBatch")} == called
    assert set(ARGUMENTS) == kept


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize(("service", "operation"), ARGUMENTS)
def test_an_operation_says_and_understands_the_same_as_with_the_whole_data(
    data: Path, service: str, operation: str, region: str
) -> None:
    for status, answer in ((200, ANSWERS[service]), (400, ERRORS[service])):
        assert spoken(data, service, operation, region, status, answer) == spoken(
            None, service, operation, region, status, answer
        )


def test_an_operation_that_the_sdk_does_not_have_fails_the_build(slim: ModuleType, tmp_path: Path) -> None:
    made = whole(tmp_path, slim)
    broken = tmp_path / "slim.py"
    broken.write_text(SLIM.read_text().replace('"SendEmail"', '"SendEmail", "SendPigeon"'))
    done = subprocess.run([sys.executable, broken, made], capture_output=True, text=True)
    assert done.returncode != 0
    assert "sesv2 has no operation SendPigeon" in done.stderr


def test_a_service_that_the_sdk_does_not_have_fails_the_build(slim: ModuleType, tmp_path: Path) -> None:
    made = whole(tmp_path, slim)
    shutil.rmtree(made / "sqs")
    with pytest.raises(SystemExit, match="sqs"):
        slim.main(made)
