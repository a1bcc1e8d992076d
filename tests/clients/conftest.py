import pytest

from clients.languages import Program
from e2e.conftest import (closing, closing_things, folder, postgres,  # noqa: F401
                          pytest_runtest_makereport, redis, start, timely)


@pytest.fixture
def program(closing):  # noqa: F811
    """program(language, socket, election, env=...): ends with the test."""
    return lambda *args, **kwargs: closing(Program(*args, **kwargs))
