"""All memories of an NPU that packets fill."""

from collections.abc import Mapping
from functools import lru_cache

from bitloom.hls_gen.design.fields import named
from bitloom.hls_gen.design.npu import Npu

from .array import array_memories, stored_fields
from .loader import loader_memories
from .memory import Memory, Rows
from .pool_unit import pool_unit_memories
from .ports import ports_memories
from .results import results_memories
from .sequencer import sequencer_memories

ORDER = (
    "network",
    "inputs",
    "layers",
    "flags",
    "olds",
    "jumps",
    "kernels",
    "results",
    "thresholds",
    "scales",
    "pool_inputs",
    "pool_layers",
    "pool_flags",
    "pool_olds",
    "binariser",
    "chunks",
    "reciprocals",
    "additions",
    "aheads",
    "pool_jumps",
    "pool_kernels",
    "pool_results",
    "pool_scales",
    "lookups",
)
"""Memories in the order of their ids, which count those that an NPU has, from 0. Memories that are not named here
follow, in the order of the parts."""


@lru_cache(maxsize=256)
def memory_rows(npu: Npu) -> Mapping[str, Rows]:
    """The rows of every loadable memory of an NPU, in the order of ids."""
    rows = {
        **loader_memories(npu),
        **sequencer_memories(npu),
        **array_memories(npu),
        **results_memories(npu),
        **pool_unit_memories(npu),
        **ports_memories(npu),
    }
    names = [*(name for name in ORDER if name in rows), *(name for name in rows if name not in ORDER)]
    return {name: rows[name] for name in names}


@lru_cache(maxsize=256)
def memory_map(npu: Npu) -> tuple[Memory, ...]:
    """Every loadable memory of an NPU, by id."""
    return tuple(Memory.of(name, id, rows) for id, (name, rows) in enumerate(memory_rows(npu).items()))


def memory_of(npu: Npu, name: str) -> Memory:
    """The memory of an NPU that has this name; KeyError, which lists its memories, if there is none."""
    return named(memory_map(npu), name, "memory")


@lru_cache(maxsize=256)
def kernel_store(npu: Npu) -> Memory:
    """Memory ``kernels`` as the NPU stores it: where a binariser stands in front of it, rows come in another form.

    Returns
    -------
    Memory
        Name, id and depth of the loadable memory, and the fields of what its RAM holds.
    """
    sent = memory_of(npu, "kernels")
    return Memory.of(sent.name, sent.id, Rows(sent.depth, stored_fields(npu)))


def kernel_bits(npu: Npu) -> int:
    """Width of a row of `kernel_store`."""
    return sum(width for _, width in stored_fields(npu))


def operand_bits(npu: Npu) -> int:
    """Width of a row of the RAM that holds the kernels: of a row of weights, or of a word of features if these lie in
    it and are wider."""
    return max(kernel_bits(npu), npu.array.word_bits if npu.array.one_memory else 0)
