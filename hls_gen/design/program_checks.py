"""The rules of a program, which are checked when it is made, whoever made it."""

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.limits import TAPS
from bitloom.golden.names import check_classes, check_layer_names, check_name
from bitloom.golden.network import Network

from .copies import copied
from .program_header import OUTPUT_KINDS

if TYPE_CHECKING:
    from .program import Program

ZERO, ONE = -1, -2
"""Values of ``frame_source`` that are no image bit: constant 0, constant 1."""

ARRAYS = {"parameters": "uint32", "frame_source": "int32", "result_index": "int32"}
SCALARS = ("frame_words", "result_words")


def check(p: "Program") -> None:
    """Raise ValueError for the first rule that a program breaks, and make an empty mapping NPU 0 for all layers."""
    check_name("program", p.name)
    for key, dtype in {**ARRAYS, "weights": "uint32"}.items():
        array = getattr(p, key)
        dims = 2 if key == "result_index" else 1
        p.require(array.dtype == np.dtype(dtype), f"{key} must be {dtype}", array.dtype)
        p.require(array.ndim == dims, f"{key} must have {dims} dimensions", array.ndim)
    for digest in ("design_digest", "model_digest"):
        value = getattr(p, digest)
        p.require(
            len(value) == 64 and set(value) <= set("0123456789abcdef"),
            f"{digest} must be 64 lower-case hex digits",
            repr(value),
        )
    p.require(
        p.output_kind in OUTPUT_KINDS, f"output_kind must be one of {', '.join(OUTPUT_KINDS)}", repr(p.output_kind)
    )
    p.require(
        len(p.output_shape) == 3 and min(p.output_shape) >= 1, "output_shape must be 3 integers >= 1", p.output_shape
    )
    for key in SCALARS:
        p.require(getattr(p, key) >= 1, f"{key} must be >= 1", getattr(p, key))
    count = len(p.weights)
    p.require(0 <= p.weights_before <= count, f"weights_before must be 0..{count}", p.weights_before)
    source = p.frame_source
    bits = p.input.size * p.input.encoding.bits
    p.require(len(source) >= 32 and len(source) % 32 == 0, "frame_source must have 32 m bits", len(source))
    p.require(
        source.min() >= ONE and source.max() < bits,
        f"frame_source must be {ONE}..{bits - 1}",
        f"{source.min()}..{source.max()}",
    )
    index = p.result_index
    count = prod(p.output_shape)
    end = p.result_words * (1 if p.output_kind == "raw" else 32)
    p.require(len(index) == count and index.shape[1] >= 1, f"result_index must have {count} rows", index.shape)
    p.require(
        index.min() >= 0 and index.max() < end, f"result_index must be 0..{end - 1}", f"{index.min()}..{index.max()}"
    )
    p.require(
        p.output_kind != "raw" or index.shape[1] == 1, "result_index of a raw output must have k = 1", index.shape[1]
    )
    if not p.mapping:
        object.__setattr__(p, "mapping", (0,) * len(p.layers))
    ok = len(p.mapping) == len(p.layers) and min(p.mapping, default=0) >= 0
    p.require(ok, f"mapping must have an NPU for each of {len(p.layers)} layers", list(p.mapping))
    if p.tail is not None:
        _check_tail(p, p.tail.network)
    check_classes(p.name, p.classes, p.network_shape[2])
    check_layer_names(*(copied(layer, n) for (layer, _), n in zip(p.layers, p.mapping)))
    if p.host is not None:
        p.require(
            p.host.digest == p.model_digest,
            f"the host's part must belong to the model {p.model_digest[:12]}",
            p.host.digest[:12],
        )


def _check_tail(p: "Program", tail: Network) -> None:
    """Raise ValueError unless layers read the device's output, have no weights, and need no endless time or memory."""
    for layer in tail.layers:
        if isinstance(layer, Pool):
            TAPS.check(f"{p.name}: {layer.name}", tail.maps[layer.name].positions * layer.window.taps)
    size = tail.input.shape
    kinds = [layer.kind for layer in tail.layers if isinstance(layer, Weighted)]
    p.require(size == p.output_shape, f"the host's layers must read a map of shape {p.output_shape}", size)
    p.require(not kinds, "the host's layers must have no weights", ", ".join(kinds))
