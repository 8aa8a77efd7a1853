"""Bring due notices back to the queue; give up those past the horizon."""

import gc

gc.disable()  # until all is made: what init makes stays, and to look through it again and again takes time

from notices import wiring  # noqa: E402

handler = wiring.retry_due_notices()
gc.freeze()
gc.enable()
