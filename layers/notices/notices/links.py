"""Where a notice's link goes: a base URL, plus a kind's path with facts in it (DESIGN 3.8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
LONGEST_LINK = 2000  # what every browser and mail client still opens


def placeholders(path: str) -> list[str]:
    """Return the facts that a path names, in order: `/workspaces/{workspace_id}` names `workspace_id`."""
    return PLACEHOLDER.findall(path)


def link(base_url: str | None, path: str | None, values: Mapping[str, str]) -> str | None:
    """Return the URL of `path` under `base_url`, its values percent-encoded.

    None without a base URL, a path or a value for each placeholder, and when no safe link can be made: a
    value of `..` leads a browser elsewhere even percent-encoded, and half a surrogate pair has no encoding.
    """
    base = (base_url or "").strip().rstrip("/")
    if not base or not path or not all(values.get(name) for name in placeholders(path)):
        return None
    try:
        filled = PLACEHOLDER.sub(lambda match: quote(values[match[1]], safe=""), path)
    except UnicodeEncodeError:
        return None
    segments = re.split(r"[?#]", filled)[0].split("/")
    if any(unquote(segment) in {".", ".."} for segment in segments) or len(base + filled) > LONGEST_LINK:
        return None
    return base + filled
