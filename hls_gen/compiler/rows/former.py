"""Fields of the window former in the row of memory ``network``."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.window_former import FormedWindows, former_row


def former_fields(formed: FormedWindows | None, npu: Npu) -> dict[str, int]:
    """Fields by which an NPU's former makes windows of a frame; all are 0 where it makes none, so that words pass. No
    fields where the NPU has no former."""
    if not npu.former_sizes:
        return {}
    return formed.row(npu) if formed else {name: 0 for name, _ in former_row(npu)}
