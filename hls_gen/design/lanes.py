"""Lanes of a binary PE with bit planes: which of them belong to which plane (docs/decisions/0003, "Bit planes")."""


def plane_lanes(lanes: int, planes: int) -> int:
    """Channels of an integer input in a word: with planes side by side each takes a lane for every plane and one for
    the constant plane; without (0) a lane, since plane comes after plane."""
    return lanes // (planes + 1) if planes else lanes


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
