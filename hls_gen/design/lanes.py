"""Lanes of a binary PE: which of them belong to which bit plane (docs/decisions/0003, "Bit planes"), and which share a
weight (docs/decisions/0015)."""

UNUSED = -1
"""In an array that says what is in each lane of a word: nothing is."""


def plane_lanes(lanes: int, planes: int) -> int:
    """Channels of an integer input in a word: with planes side by side each takes a lane for every plane and one for
    the constant plane; without (0) a lane, since plane comes after plane."""
    return lanes // (planes + 1) if planes else lanes


def plane_order(planes: int) -> list[int]:
    """The plane of each run of ``plane_lanes`` lanes of a word: plane 0 and the constant one, which has number
    ``planes`` and is in group 0 too, then the others."""
    return [0, planes, *range(1, planes)]


def lane_groups(lanes: int, planes: int) -> list[tuple[int, int]]:
    """Split the lanes of a PE into groups, one for each bit plane of an integer input.

    Parameters
    ----------
    lanes
        Lanes of the PE.
    planes
        Bit planes side by side, >= 2; or 0: the PE has one group.

    Returns
    -------
    list of (int, int)
        (first lane, lanes) of each group. Group 0 also has the constant lanes, the last one what is left over.
    """
    if not planes:
        return [(0, lanes)]
    size = plane_lanes(lanes, planes)
    spare = lanes - size * (planes + 1)
    return [(0, 2 * size)] + [((g + 1) * size, size + spare * (g == planes - 1)) for g in range(1, planes)]


def weight_of_lanes(lanes: int, lanes_per_weight: int, lane_step: int) -> list[int]:
    """Number of the weight that each lane of a PE meets.

    Lanes come in blocks of ``lanes_per_weight * lane_step``. In a block, lanes that lie ``lane_step`` apart share a
    weight: they have the bits of one channel's value. What is left over behind the last block is a part of a block.

    Parameters
    ----------
    lanes
        Lanes of the PE.
    lanes_per_weight
        Lanes that share a weight; 1: every lane has its own.
    lane_step
        How far apart they lie: as many lanes as results leave in a step (OL) where the map is made.

    Returns
    -------
    list of int
        Of every lane; all numbers from 0 on are used.

    Examples
    --------
        weight_of_lanes(8, 2, 2) == [0, 1, 0, 1, 2, 3, 2, 3]
    """
    block = lanes_per_weight * lane_step
    return [lane // block * lane_step + lane % lane_step for lane in range(lanes)]
