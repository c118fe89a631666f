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


def problem(plan: TilePlan) -> dict[str, int]:
    """The source's ``struct Problem`` for a plan."""
    layer = plan.layer
    return _problem(
        plan,
        groups=layer.groups,
        out_channels=layer.out_channels,
        out_groups=layer.out_groups,
        pad=PAD_CODES[layer.pad],
        stage_groups=plan.stage_groups,
        buffers=plan.buffers,
    )


def pool_problem(plan: PoolPlan) -> dict[str, int]:
    """The source's ``struct Problem`` for a pool's plan."""
    return _problem(plan, groups=plan.groups, out_channels=plan.layer.channels, out_groups=plan.groups)


def _problem(plan: TilePlan | PoolPlan, **others: int) -> dict[str, int]:
    """The source's ``struct Problem``, with the members of all plans; those that nothing is said of are 0."""
    window = plan.layer.window
    rows, columns = plan.output
    kernel_rows, kernel_columns = window.kernel
    stride_rows, stride_columns = window.stride
    top, left, _, _ = window.padding
    members = dict(
        channels=plan.layer.channels,
        height=plan.height,
        width=plan.width,
        out_height=rows,
        out_width=columns,
        kernel_rows=kernel_rows,
        kernel_columns=kernel_columns,
        stride_rows=stride_rows,
        stride_columns=stride_columns,
        top=top,
        left=left,
    )
    return dict.fromkeys(FIELDS, 0) | members | others


def pool_instance(plan: PoolPlan) -> str:
    """The instance of a function template of the source that runs a pool's plan."""
    return f"binary_pool<{WORDS[plan.word_bits]}>"


def instance(plan: TilePlan) -> str:
    """The instance of a function template of the source that runs a plan."""
    function, _, form = plan.kernel.partition("-")
    arguments = [WORDS[plan.layer.word_bits], *map(str, plan.patch), str(kernel_constant(plan))]
    if form:
        arguments.append("true" if form == "xor" else "false")
    return f"binary_conv_{function}<{', '.join(arguments)}>"


def kernel_constant(plan: TilePlan) -> int:
    """The source's template parameter KERNEL."""
    kh, kw = plan.layer.window.kernel
    return kh if kh == kw and kh in UNROLLED else 0
