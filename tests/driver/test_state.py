"""Reports by the STATE registers of a stuck device: waits, and circles of them."""

import pytest

from bitloom.driver.errors import Timeout
from bitloom.driver.state import circle, explain, waits

MOVING = {"RING_BLOCKED": 0, "WAITS_INPUT": 0, "INLET": 1, "RING_VALID": 0}
BLOCKED = MOVING | {"RING_BLOCKED": 1}
HUNGRY = MOVING | {"WAITS_INPUT": 1}


def state(*npus: dict[str, int]) -> dict[str, int]:
    return {f"npu{n}.{name}": value for n, fields in enumerate(npus) for name, value in fields.items()}


def test_who_waits_for_whom():
    assert waits(state(BLOCKED, MOVING, HUNGRY)) == {0: (1, "room at"), 2: (1, "words of")}
    assert waits(state(MOVING, MOVING, BLOCKED)) == {2: (0, "room at")}


@pytest.mark.parametrize("change", [{"INLET": 0}, {"INLET": 2}, {"RING_VALID": 1}])
def test_who_waits_for_somebody_else(change):
    """For the host, for its own map store, for room in its tuple memory."""
    assert waits(state(MOVING, HUNGRY | change)) == {}


def test_circles():
    assert circle(state(BLOCKED, BLOCKED)) == [0, 1]
    assert circle(state(MOVING, BLOCKED, HUNGRY)) == [1, 2]
    assert circle(state(BLOCKED, BLOCKED, MOVING)) == []
    assert circle(state(MOVING)) == circle({}) == []


def test_the_message_names_the_circle():
    said = "a circle of waits: NPU 0 waits for room at NPU 1, NPU 1 waits for room at NPU 0"
    assert explain(state(BLOCKED, BLOCKED)) == said
    assert explain(state(BLOCKED, MOVING)) == ""
    assert said in str(Timeout("x", {"STATUS": 0}, state(BLOCKED, BLOCKED)))
