"""What Lambda's runtime does, and no more: import the function, hand it batches, say what that took.

Run by the declared interpreter on a built function, one process for each; it imports nothing of this project but what
was built. It reads commands from its standard input, one JSON object a line, and answers each with one:

    {"batch": 10, "times": 20, "job": "warm"}    →  {"wall": [seconds, ...], "cpu": seconds, "rss": bytes}

Its first line says that the function is imported. What the function itself writes goes to /dev/null, as Lambda's log
socket costs the function nothing either.
"""

import json
import os
import sys
import time
import types

CONTEXT = types.SimpleNamespace(
    get_remaining_time_in_millis=lambda: 110_000,
    aws_request_id="9d1c2f6e-0000-4000-8000-000000000000",
    function_name="tell-requester",
    function_version="$LATEST",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:eu-west-1:123456789012:function:tell-requester",
)


def event(job, number, size):
    """Return a batch as SQS sends it."""
    return {
        "Records": [
            {
                "messageId": f"message-{job}-{number}-{index}",
                "receiptHandle": "handle",
                "body": json.dumps(
                    {
                        "type": "job.settled",
                        "version": "1",
                        "job_id": f"{job}-{number}-{index}",
                        "outcome": "failed" if index % 3 == 2 else "succeeded",
                    }
                ),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1767225600000",
                    "SenderId": "AIDAEXAMPLE",
                    "ApproximateFirstReceiveTimestamp": "1767225600001",
                },
                "messageAttributes": {},
                "md5OfBody": "00000000000000000000000000000000",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:job-settled",
                "awsRegion": "eu-west-1",
            }
            for index in range(size)
        ]
    }


def memory():
    """Return the memory in use and the most that ever was, in bytes."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return {"rss": int(lines["VmRSS"].split()[0]) * 1024, "peak": int(lines["VmHWM"].split()[0]) * 1024}


def main(folders):
    """Import the function and obey."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path[:0] = folders
    before = os.environ.get("BENCH_BEFORE")
    if before:
        exec(before, {})  # a step switched off, see steps.py
    import app

    print(json.dumps({"imported": True, "cpu": time.process_time(), **memory()}), file=answers)
    number = 0
    for line in sys.stdin:
        told = json.loads(line)
        walls, cpu = [], time.process_time()
        for _ in range(told["times"]):
            number += 1
            batch = event(told["job"], number, told["batch"])
            started = time.perf_counter()
            answer = app.handler(batch, CONTEXT)
            walls.append(time.perf_counter() - started)
            if answer != {"batchItemFailures": []}:
                sys.exit(f"not all told: {answer}")
        spent = {"wall": walls, "cpu": time.process_time() - cpu, "total_cpu": time.process_time(), **memory()}
        print(json.dumps(spent), file=answers)


main(sys.argv[1:])
