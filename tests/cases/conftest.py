from collections.abc import Iterator

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
