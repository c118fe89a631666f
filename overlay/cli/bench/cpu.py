"""The command bench cpu: the packed convolution beside PyTorch's on this processor."""

from typing import Any

import click

from bitloom.golden.kernels.tiled.cpu import processors

from .convolutions import convolution_options, measure_and_show


@click.command("cpu")
@convolution_options
@click.option("--threads", type=click.IntRange(1), help="Of both sides.  [default: processors]")
def cpu_command(threads: int | None, **options: Any) -> None:
    """Measure the packed convolution on this processor beside PyTorch's in fp32, bf16, fp16 and int8.

    Each path that the processor has, against the faster of PyTorch's two orders of memory: medians of runs in turn,
    and the bytes of input and weights. Outputs are compared bit for bit. Without PyTorch there are no ratios.
    """
    measure_and_show("cpu", threads=threads or processors(), **options)
