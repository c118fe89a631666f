"""Arguments and template parameters of the CUDA source (binary_conv.cu), which gpu.py compiles and runs."""

from pathlib import Path

from .network import PoolPlan
from .plan import TilePlan

SOURCE = Path(__file__).with_name("binary_conv.cu")
UNROLLED = (1, 3, 5)
"""Square kernels that get code of their own; the loops of others have bounds known at run time."""

FIELDS = (
    "channels",
    "groups",
    "height",
    "width",
    "out_channels",
    "out_groups",
    "out_height",
    "out_width",
    "kernel_rows",
    "kernel_columns",
    "stride_rows",
    "stride_columns",
    "top",
    "left",
    "pad",
    "stage_groups",
    "buffers",
)
"""Members of the source's ``struct Problem``, each an int, in its order."""

WORDS = {32: "unsigned int", 64: "unsigned long long"}
"""The source's type of a word, by its bits."""

PAD_CODES = {"valid": 0, "-1": 0, "+1": 1, "exact": 2}
"""The source's ``enum Pad``."""


def problem(how: TilePlan) -> dict[str, int]:
    """The source's ``struct Problem`` for a plan."""
    layer, (rows, columns) = how.layer, how.output
    (kh, kw), (sy, sx), (top, left, _, _) = layer.window.kernel, layer.window.stride, layer.window.padding
    values = (
        layer.channels,
        layer.groups,
        how.height,
        how.width,
        layer.out_channels,
        layer.out_groups,
        rows,
        columns,
        kh,
        kw,
        sy,
        sx,
        top,
        left,
        PAD_CODES[layer.pad],
        how.stage_groups,
        how.buffers,
    )
    return dict(zip(FIELDS, values))


def pool_problem(how: PoolPlan) -> dict[str, int]:
    """The source's ``struct Problem`` for a pool's plan; the members that it has no use for are 0."""
    (rows, columns), window = how.output, how.layer.window
    (kh, kw), (sy, sx), (top, left, _, _) = window.kernel, window.stride, window.padding
    values = {
        "channels": how.layer.channels,
        "groups": how.groups,
        "height": how.height,
        "width": how.width,
        "out_channels": how.layer.channels,
        "out_groups": how.groups,
        "out_height": rows,
        "out_width": columns,
        "kernel_rows": kh,
        "kernel_columns": kw,
        "stride_rows": sy,
        "stride_columns": sx,
        "top": top,
        "left": left,
    }
    return dict.fromkeys(FIELDS, 0) | values


def pool_instance(how: PoolPlan) -> str:
    """The instance of a function template of the source that runs a pool's plan."""
    return f"binary_pool<{WORDS[how.word_bits]}>"


def instance(how: TilePlan) -> str:
    """The instance of a function template of the source that runs a plan."""
    function, _, form = how.kernel.partition("-")
    arguments = [WORDS[how.layer.word_bits], *map(str, how.patch), str(kernel_constant(how))]
    if form:
        arguments.append("true" if form == "xor" else "false")
    return f"binary_conv_{function}<{', '.join(arguments)}>"


def kernel_constant(how: TilePlan) -> int:
    """The source's template parameter KERNEL."""
    kh, kw = how.layer.window.kernel
    return kh if kh == kw and kh in UNROLLED else 0
