"""Bring due notices back to the queue; give up those past the horizon."""

from notices import wiring

handler = wiring.retry_due_notices()
