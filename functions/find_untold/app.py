"""Look for settled jobs that nobody was told about."""

import gc

gc.disable()  # until all is made: what init makes stays, and to look through it again and again takes time

from notices import wiring  # noqa: E402

handler = wiring.find_untold()
gc.freeze()
gc.enable()
