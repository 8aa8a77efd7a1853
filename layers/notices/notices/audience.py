"""Who a requester is to the platform."""

from __future__ import annotations

from typing import Literal

Audience = Literal["staff", "customer"]
