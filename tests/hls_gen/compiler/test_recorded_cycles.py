"""Random networks of each kind take as many cycles as before, or are refused as before."""

import json

import pytest

from tests.replay import networks
from tests.replay.record import CYCLES, cycles


@pytest.mark.parametrize("kind", networks.KINDS)
def test_cycles_are_as_recorded(kind: str) -> None:
    """A change that is meant to change them renews the record: `python -m tests.replay.record`."""
    assert cycles(kind) == json.loads(CYCLES.read_text())[kind]
