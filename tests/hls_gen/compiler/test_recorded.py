"""Random networks of each kind become what they became before: design, program and cycles, or the refusal."""

import json

import pytest

from tests.replay import networks
from tests.replay.record import PROGRAMS, programs


@pytest.mark.parametrize("kind", networks.KINDS)
def test_programs_are_as_recorded(kind: str) -> None:
    """A change that is meant to change them renews the record: `python -m tests.replay.record`."""
    assert programs(kind) == json.loads(PROGRAMS.read_text())[kind]
