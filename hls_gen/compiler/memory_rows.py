"""Rows of the memories of an NPU: what its part of a plan becomes in the fields that hardware reads."""

from collections.abc import Mapping, Sequence

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.addition import passing
from bitloom.hls_gen.design.headers import Words
from bitloom.hls_gen.design.memories import ROUNDING, Memory
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.rows import pack_fields, pack_rows

from .fixed_kernels import integers
from .integer_rows import reciprocals, scale_fields, two_complement
from .lowered_layers import Addition
from .npu_plan import NpuPlan
from .tables import FLAGS, MODULAR, Tables


def memory_rows(made: NpuPlan, npu: Npu, kernels_at: Sequence[Mapping[str, int]]) -> dict[str, Words]:
    """Make the rows of each memory, from row 0 on, that an NPU's part of a plan fills.

    An NPU without layers gets a layer that waits for a word, and no word ever comes.

    Parameters
    ----------
    made
        The NPU's part of the plan.
    npu
        The NPU.
    kernels_at
        Where each layer's kernels lie, by field of memory ``layers``: in place of what the plan says.

    Returns
    -------
    dict
        Name of a memory -> (rows, words of a row) uint32, in the order in which they are sent.
    """
    if not made.results:
        return {
            f"{prefix}{name}": _waiting(npu.memory(f"{prefix}{name}"))
            for prefix in ("", *["pool_"] * npu.pool)
            for name in ("inputs", "layers")
        }
    layers = [{**row, **at} for row, at in zip(made.conv.layers, kernels_at, strict=True)]
    out = {**_table_rows(made.conv, layers, npu, ""), **_table_rows(made.pool, made.pool.layers, npu, "pool_")}
    codes = _code_bits(made, npu)
    kernels = np.concatenate([np.concatenate(made.kernels), codes], axis=1)
    if npu.kernel_binariser:
        kernels = sent_kernels(kernels, np.concatenate([np.concatenate(made.magnitudes), codes], axis=1))
    out["kernels"] = pack_rows(npu.memory("kernels").width, kernels)
    out["results"] = pack_fields(npu.memory("results"), columns(_known(made.results, npu)))
    if npu.depthwise:
        out |= _depthwise_rows(made, npu)
    if made.chunks:
        out["chunks"] = pack_fields(npu.memory("chunks"), {"words_minus_1": np.array(made.chunks) - 1})
    if npu.skip_words:
        kept = [{"keeps": int(one)} for one in made.kept] if npu.keeps_steps else [{} for _ in made.additions]
        additions = [_addition(npu, one) | more for one, more in zip(made.additions, kept)]
        out["additions"] = pack_fields(npu.memory("additions"), columns(additions))
    if len(made.binariser):
        width = npu.binariser_bits + 1
        out["binariser"] = pack_rows(npu.memory("binariser").width, two_complement(made.binariser, width))
    if made.scales:
        out["scales"] = _packed_scales(npu, "scales", made.scales, made.fractions)
        if npu.pool and npu.engine == "integer":
            table = {"reciprocal": reciprocals(npu.reciprocal_bits)}
            out["reciprocals"] = pack_fields(npu.memory("reciprocals"), table)
        return out
    limits = np.concatenate(made.thresholds)
    thresholds = npu.memory("thresholds")
    bits = (limits[..., None] >> np.arange(npu.acc_bits)) & 1
    out["thresholds"] = pack_rows(thresholds.width, bits.reshape(len(limits), thresholds.width))
    return out


def sent_kernels(rows: Array, magnitudes: Array) -> Array:
    """(n, width) bits of kernel rows as a binariser of kernels takes them: 8 bits of an integer for each bit of a row,
    the integer having the bit's sign and this magnitude. Where magnitudes are the bits, 1 is +1 and 0 is -1."""
    return np.unpackbits(integers(rows, magnitudes).view(np.uint8), axis=1, bitorder="little")


def _known(rows: Sequence[Mapping[str, int]], npu: Npu) -> list[dict[str, int]]:
    """Rows of memory ``results`` or ``pool_results``, which only some NPUs ask how a layer rounds."""
    missing = {name for name in ROUNDING if not getattr(npu, name)}
    return [{key: value for key, value in row.items() if key not in missing} for row in rows]


def _depthwise_rows(made: NpuPlan, npu: Npu) -> dict[str, Words]:
    """Rows of the memories that a pool unit with weights has besides."""
    if not made.pool.layers:
        return {}
    out = {"pool_results": pack_fields(npu.memory("pool_results"), columns(_known(made.pool_results, npu)))}
    if made.pool_kernels:
        out["pool_kernels"] = pack_rows(npu.memory("pool_kernels").width, np.concatenate(made.pool_kernels))
        out["pool_scales"] = _packed_scales(npu, "pool_scales", made.pool_scales, made.pool_fractions)
    return out


def _packed_scales(npu: Npu, name: str, parts: Sequence[Mapping[str, Array]], fractions: Sequence[int]) -> Words:
    """Rows of memory ``scales`` or ``pool_scales`` for the columns of all layers."""
    fields = [scale_fields(part, npu, fraction) for part, fraction in zip(parts, fractions)]
    return pack_fields(npu.memory(name), {key: np.concatenate([one[key] for one in fields]) for key in fields[0]})


def _addition(npu: Npu, made: Addition | None) -> dict[str, int]:
    """Row of memory ``additions`` for a layer with this addition."""
    if made is None:
        return passing(npu)
    return {
        "adds": 1,
        "factor_kept": made.factor_kept,
        "factor_skipped": made.factor_added,
        "bias": made.bias,
        "shift": min(made.shift, npu.most_add_shift),
        "low": made.low,
        "high": made.high,
    }


def _waiting(memory: Memory) -> Words:
    """A row of memory ``inputs`` or ``layers`` for an NPU without layers: one word, no table."""
    ones = {"words": 1, "hold_tuples": 1, "hold_words": 1, "direct": 1}
    return pack_fields(memory, {f.name: np.array([ones.get(f.name, 0)]) for f in memory.fields})


def _table_rows(tables: Tables, layers: Sequence[Mapping[str, int]], npu: Npu, prefix: str) -> dict[str, Words]:
    """Rows of the memories of one sequencer, whose names begin with ``prefix``, with rows ``layers`` in place of those
    of the tables; none if it has no layer."""
    if not layers:
        return {}
    capacity = npu.pool_words if prefix else npu.tuple_words
    parts: dict[str, Mapping[str, Array]] = {
        "inputs": columns(tables.inputs),
        "layers": _modular(columns(layers), npu.memory(prefix + "layers")),
        "flags": dict(zip(FLAGS if tables.kernel else FLAGS[:-1], _joined(tables.flags, len(FLAGS)).T)),
        "olds": {"word": _joined(tables.olds) % capacity},
    }
    if tables.kernel:
        parts["jumps"] = {"row": _joined(tables.jumps)}
    if tables.ahead:
        parts["aheads"] = {"words": _joined(tables.aheads)}
    return {prefix + name: pack_fields(npu.memory(prefix + name), part) for name, part in parts.items()}


def _modular(layers: dict[str, Array], memory: Memory) -> dict[str, Array]:
    """Columns of memory ``layers``; those that are added to addresses are cut to their fields' widths."""
    return {name: c % (1 << memory.field(name).width) if name in MODULAR else c for name, c in layers.items()}


def columns(rows: Sequence[Mapping[str, int]]) -> dict[str, Array]:
    """Turn rows by field into a column for each field.

    Parameters
    ----------
    rows
        At least one row; all have the same fields.

    Returns
    -------
    dict
        Name of a field -> (rows,) its values.
    """
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _joined(parts: Sequence[Array], width: int = 0) -> Array:
    """All layers' rows one after another; (0,) or (0, width) where there are none."""
    return np.concatenate([np.zeros((0, width) if width else 0, np.int64), *parts])


def _code_bits(made: NpuPlan, npu: Npu) -> Array:
    """(kernel rows, code bits) of 0 and 1, which follow the weights in each kernel row.

    An NPU with plane groups has one bit: whether the words that the row meets are those of an integer input; none if no
    other words ever come. An NPU without has the shift of the row's bit plane, low bit first, and then its sign; none
    if it can't shift. On top come, in an NPU that can accumulate both ways, whether the layer accumulates by OR, and in
    one that counts words beside products, whether the layer does.
    ValueError where a layer needs a code that the rows have no bit for.
    """
    codes = np.concatenate(made.codes)[:, None]
    parts = [codes]
    if npu.planes and not npu.code_bits:
        for p, layer in zip(made.layers, made.codes):
            if not layer.all():
                raise ValueError(f"{p.name}: an NPU with planes and no inlet but host must read integers, got bits")
        parts = []
    elif not npu.planes:
        shift_bits = npu.shift_bits
        shift = np.where(codes < 0, -1 - codes, codes)
        parts = [(shift >> k) & 1 for k in range(shift_bits)] + [(codes < 0).astype(np.int64)] * (shift_bits > 0)
    for choice, chosen in ((npu.accumulate == "both", made.any_match), (npu.chooses_words, made.by_words)):
        if choice:
            parts.append(np.repeat(chosen, [len(layer) for layer in made.codes])[:, None])
    return np.concatenate([codes[:, :0], *parts], axis=1)
