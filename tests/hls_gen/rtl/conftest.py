"""A bench that the tests of a file share."""

import pytest

from .bench import Bench


@pytest.fixture
def bench(built: Bench) -> Bench:
    """The file's bench ``built``, after a reset."""
    built.reset()
    return built
