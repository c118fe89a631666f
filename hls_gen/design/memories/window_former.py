"""Fields of the network's row that tell the window former what to form of a map."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS, bits_for

from .memory import FieldWidths


def former_fields(npu: Npu) -> FieldWidths:
    """Fields of the former; none where an NPU has none.

    Whether it forms windows; granules of a position, positions of a word that comes and words of a window where there
    may be several; of each axis the first position, which is negative beside the map, the end of those that come, the
    last one, and kernel and stride. In the binary engine also how many granules of a column and how many columns a
    window has: the others must be 0 there.
    """
    sizes = npu.former_sizes
    if sizes is None:
        return []
    fields = [("former_on", 1)]
    column = sizes.column // sizes.granule
    most = {"channels": sizes.channels // sizes.granule, "positions": npu.array.plane_lanes, "words": npu.former_words}
    fields += [(f"former_{what}_minus_1", bits_for(count - 1)) for what, count in most.items() if count > 1]
    for axis in "yx":
        place = bits_for(sizes.line) if axis == "x" else SIDE_BITS + 1  # negative beside the map: none is met twice
        fields += [(f"former_{axis}_{what}", place) for what in ("first", "end", "last")]
        fields += [(f"former_{axis}_{what}_minus_1", PLACE_BITS) for what in ("kernel", "stride")]
    if not npu.array.zero_weights:
        fields += [("former_lanes_used", bits_for(column)), ("former_columns_used", bits_for(sizes.columns))]
    return fields
