"""Record what SES says of the messages: a batch of SES events in, its failures out."""

from notices import wiring

handler = wiring.record_feedback()
