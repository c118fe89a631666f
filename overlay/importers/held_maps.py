"""Which integers the maps between ways hold: decided once for each map, and alike for maps that are concatenated."""

from collections.abc import Mapping, Sequence

from .choose import Held, held_from, integers, padded
from .errors import ImportRefused, printable
from .joins import Sum
from .sections import Quantised, Section
from .way_cuts import WayCut


class SeveralZeroPoints(ImportRefused):
    """Maps that hold the same integers, of which the operators at them need different ones.

    Parameters
    ----------
    name : str
        Of the node that makes the first one.
    means : frozenset of str
        Names of those of the maps whose means are taken as golden's pool does: convolutions would leave the choice.
    """

    def __init__(self, name: str, means: frozenset[str]) -> None:
        super().__init__([f"{printable(name)}: the operators that read its map must have one zero point, got several"])
        self.means = means


def held_between(cuts: Sequence[WayCut]) -> dict[str, Held]:
    """How each map between ways is held, by tensor, and what each concatenation makes.

    Raises
    ------
    SeveralZeroPoints
        If no integers are right for all that make and read a map.
    """
    maps, readers = dict[str, Quantised](), dict[str, list[Section]]()
    apart: dict[str, dict[str, int]] = {}  # tensor -> those that hold the same integers: by how much level 0 is higher
    for one in cuts:
        joined = one.way.operations[0].makes
        if one.head is None:
            readers.setdefault(one.way.reads[0], []).append(one.cut.sections[0])
        elif not isinstance(one.way.join, Sum) and one.head.made is not None:  # integers go on as they are
            maps[joined] = one.head.made
            readers.setdefault(joined, []).extend(one.cut.sections[:1])
            equal = [*zip(one.way.reads, one.shifts), *([] if one.cut.sections else [(one.way.makes, 0)])]
            for tensor, shift in equal:
                apart.setdefault(joined, {})[tensor] = shift
                apart.setdefault(tensor, {})[joined] = -shift
        if one is not cuts[-1]:
            maps.setdefault(one.way.makes, one.made)
    nodes = {one.way.makes: one.way.operations[-1].name for one in cuts}
    out = dict[str, Held]()
    for tensor in maps:
        if tensor not in out:
            out.update(_held_alike(_together(tensor, apart), maps, readers, nodes))
    return out


def _together(tensor: str, apart: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """All tensors that hold the same integers as one, itself included: by how much their level 0 is higher."""
    found, ahead = {tensor: 0}, [tensor]
    while ahead:
        here = ahead.pop()
        for other, shift in apart.get(here, {}).items():
            if other not in found:
                found[other] = found[here] + shift
                ahead.append(other)
    return found


def _held_alike(
    group: Mapping[str, int], maps: Mapping[str, Quantised], readers: Mapping[str, Sequence[Section]],
    nodes: Mapping[str, str],
) -> dict[str, Held]:
    """How the maps of a group are held: as those that leave no choice, else as the first one is best held."""
    chosen: list[tuple[str, Held]] = []
    known = [tensor for tensor in group if tensor in maps]
    for tensor in known:
        sections = readers.get(tensor, [])
        chosen += [(tensor, integers(maps[tensor], section)) for section in sections if padded(section)]
        if maps[tensor].averaged or maps[tensor].rule is not None:
            chosen.append((tensor, integers(maps[tensor], None)))
    if not chosen:
        read = next((tensor for tensor in known if readers.get(tensor)), known[0])
        chosen.append((read, integers(maps[read], next(iter(readers.get(read, [])), None))))
    lowest = {held.zero - group[tensor] for tensor, held in chosen}  # integer of the level that is 0 in the first one
    if len(lowest) > 1:
        means = frozenset(maps[tensor].name for tensor in known if maps[tensor].averaged)
        raise SeveralZeroPoints(nodes.get(known[0], known[0]), means)
    (low,) = lowest
    return {tensor: held_from(low + group[tensor], maps[tensor].levels) for tensor in known}
