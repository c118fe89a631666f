"""Fields of the window former in the row of memory ``network``."""

from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.memories.window_former import former_fields
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present


def former_values(formed: FormedWindows | None, npu: Npu) -> dict[str, int]:
    """Values of the fields by which an NPU's former makes windows of a map; all are 0 where it makes none, so that
    words pass. No fields where the NPU has no former."""
    widths = dict(former_fields(npu))
    if formed is None or not widths:
        return dict.fromkeys(widths, 0)
    channels = formed.position_channels // present(npu.former_sizes).granule
    values = {
        "former_on": 1,
        "former_channels_minus_1": channels - 1,
        "former_positions_minus_1": formed.word_positions - 1,
        "former_words_minus_1": formed.words - 1,
        "former_lanes_used": formed.kernel[0] * channels,
        "former_columns_used": formed.kernel[1],
    }
    for k, axis in enumerate("yx"):
        lead = formed.lead[k]
        first = f"former_{axis}_first"
        values |= {
            first: -lead % (1 << widths[first]),
            f"former_{axis}_end": formed.sent[k],
            f"former_{axis}_last": formed.padded[k] - 1 - lead,
            f"former_{axis}_kernel_minus_1": formed.kernel[k] - 1,
            f"former_{axis}_stride_minus_1": formed.stride[k] - 1,
        }
    return {name: value for name, value in values.items() if name in widths}
