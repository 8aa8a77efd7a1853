"""The whole system on one machine: a local AWS, our template on it, and something to watch."""
