"""Record what SES says of the messages: a batch of SES events in, its failures out."""

import gc

gc.disable()  # until all is made: what init makes stays, and to look through it again and again takes time

from notices import wiring  # noqa: E402

handler = wiring.record_feedback()
gc.freeze()
gc.enable()
