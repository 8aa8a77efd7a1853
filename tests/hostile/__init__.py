"""Hostile input: what may arrive, what must hold whatever arrives, and the two fuzzers that look for what does not."""
