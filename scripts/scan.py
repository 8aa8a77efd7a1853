"""``make scan``: the template by the rules of checkov, against the exceptions that security/exceptions.toml names.

Exit status: 0 when every finding is an exception and every exception is still needed, 1 when not, 2 when the scanner
could not be run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scripts.template import ROOT

CHECKOV = ROOT / ".venv" / "checkov" / "bin" / "checkov"
EXCEPTIONS = ROOT / "security" / "exceptions.toml"
FEWEST_PASSED = 20  # a scanner that looks at nothing finds nothing


@dataclass(frozen=True)
class Finding:
    """A rule that a resource does not meet; ``resource`` is its type and logical id, joined by a dot."""

    check: str
    resource: str
    says: str = ""


@dataclass(frozen=True)
class Allowed:
    """A rule that some resources need not meet, and why."""

    check: str
    resources: tuple[str, ...]  # as a Finding names them; * stands for anything
    reason: str

    def covers(self, finding: Finding) -> bool:
        """Whether the finding is what this exception is for."""
        return finding.check == self.check and any(fnmatchcase(finding.resource, each) for each in self.resources)


def exceptions(path: Path = EXCEPTIONS) -> list[Allowed]:
    """Return the exceptions. Raises KeyError or TypeError for one that lacks a part."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["exception"]
    return [Allowed(each["check"], tuple(each["resources"]), " ".join(each["reason"].split())) for each in listed]


def problems(findings: Sequence[Finding], allowed: Iterable[Allowed]) -> Iterator[str]:
    """Say which findings are no exception, and which exceptions are no longer needed."""
    allowed = list(allowed)
    for finding in findings:
        if not any(exception.covers(finding) for exception in allowed):
            yield f"{finding.check} {finding.resource}: {finding.says}. Mend it, or name the exception and its reason."
    for exception in allowed:
        for pattern in exception.resources:
            alone = Allowed(exception.check, (pattern,), exception.reason)
            if not any(alone.covers(finding) for finding in findings):
                yield f"{exception.check} {pattern}: nothing needs this exception any more. Take it out."


def read_findings(report: dict[str, Any]) -> list[Finding]:
    """Return the findings in checkov's report.

    Raises:
        ValueError: it could not read the template, or looked at next to nothing.
    """
    summary = report["summary"]
    if summary["parsing_errors"] or summary["passed"] < FEWEST_PASSED:
        raise ValueError(f"checkov read too little of the template: {summary}")
    return [
        Finding(each["check_id"], each["resource"], each["check_name"]) for each in report["results"]["failed_checks"]
    ]


def scan() -> list[Finding]:
    """Run checkov, which says what it finds by its exit status too. Raises ValueError when it did not run."""
    # --skip-download: the rules that it ships with, and no word to its makers
    command = [str(CHECKOV), "--file", "template.yaml", "--framework", "cloudformation", "--skip-download"]
    ran = subprocess.run([*command, "--output", "json"], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return read_findings(json.loads(ran.stdout))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"checkov gave no report: {ran.stderr[-2000:] or ran.stdout[-2000:]}") from error


def main() -> int:
    """Scan and return the exit status."""
    try:
        findings = scan()
    except (OSError, ValueError) as error:
        print(error)
        return 2
    wrong = list(problems(findings, exceptions()))
    print("\n".join(wrong) if wrong else f"{len(findings)} findings, every one an exception with its reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
