"""Tell requesters how their jobs ended: a batch of job.settled events in, its failures out."""

from notices import wiring

handler = wiring.tell_requester()
