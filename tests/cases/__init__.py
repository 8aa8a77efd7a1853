"""The bug cases of tests/data/cases.json, played end to end through the handlers as Lambda would call them."""
