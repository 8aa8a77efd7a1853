"""Tell requesters how their jobs ended: a batch of job.settled events in, its failures out."""

import gc

gc.disable()  # until all is made: what init makes stays, and to look through it again and again takes time

from notices import wiring  # noqa: E402

handler = wiring.tell_requester()
gc.freeze()
gc.enable()
