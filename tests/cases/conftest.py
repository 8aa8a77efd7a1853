from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cases.run import Run
from cases.stage import Stage


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """The run that a test names, seeded and ready to be played."""
    run = Run.of(request.param)
    with run.stage:
        run.seed()
        yield run


@pytest.fixture
def stage() -> Iterator[Stage]:
    """An empty stage."""
    with Stage() as stage:
        yield stage


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The records of a batch go one after the other, where what happens to them is a matter of their order."""
    monkeypatch.setattr("notices.wiring.ThreadPoolExecutor", lambda _threads, name: ThreadPoolExecutor(1, name))
