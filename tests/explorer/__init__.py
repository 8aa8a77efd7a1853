"""Every schedule of the real code: which processes run, in which order their calls take effect, and what goes wrong.

    process.py     a process: the real code as a function from the answers it got to the next call it makes
    shared.py      what processes share: the notice, the mail provider, the queues; and what one call does to them
    faults.py      what may happen at a call
    schedules.py   the search: every order and every fault, equal states once
    repair.py      what runs after each schedule until nothing is left to do
    invariants.py  what has to hold
    scenarios.py   who meets whom
    replay.py      one schedule run from its beginning, without any of the search's short cuts
    mutations.py   deliberate faults in the code, each of which an invariant has to catch
    page.py        docs/guarantees.md

Two short cuts make it fast, and both are sound. A process is deterministic, since its clock, its ids and its jitter
are its own: what it does next depends on the answers that it got and on nothing else, so the code is run once for each
list of answers and not once for each schedule (`process.Node`). And schedules that lead to the same state, notice and
all, have the same future: it is explored once (`schedules.State`), and every way into it is counted.
"""
