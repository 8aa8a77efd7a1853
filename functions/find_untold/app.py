"""Look for settled jobs that nobody was told about."""

from notices import wiring

handler = wiring.find_untold()
