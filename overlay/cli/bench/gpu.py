"""The command bench gpu: the CUDA kernels beside PyTorch's on this GPU."""

from typing import Any

import click

from .convolutions import convolution_options, measure_and_show


@click.command("gpu")
@convolution_options
def gpu_command(**options: Any) -> None:
    """Measure the CUDA kernels on this GPU beside PyTorch's in fp32 (no TF32), TF32, bf16 and fp16.

    Where there is no GPU, no CuPy or no PyTorch for CUDA, the rows say "not run" and why.
    """
    measure_and_show("cuda", **options)
