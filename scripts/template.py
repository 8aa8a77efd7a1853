"""Read template.yaml as data, with the long forms of CloudFormation's functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent


def load(path: Path = ROOT / "template.yaml") -> dict[str, Any]:
    """The template at ``path``, as the JSON that CloudFormation takes as well."""
    template: dict[str, Any] = json.loads(json.dumps(cfn_yaml.load(str(path))))
    return template
