"""Where integers wait that a binary NPU keeps for an addition (docs/decisions/0022): in its own skip store, or in that
of the next NPU, which computes the addition.

    NPU 0: conv_1 --signs--> ring -----------> NPU 1: conv_2 --> addition
                `--integers--> skip store of NPU 1 ----------------^

Whose store they wait in is hardware: it is the same for all maps that an NPU keeps, and one NPU fills a store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bitloom.hls_gen.design.folding import Folding
from bitloom.hls_gen.design.npu import Npu

from .map_way import MapWay
from .outlet_ways import way


def kept_on(npus: Sequence[Folding], name: str, on: Mapping[str, int], adder: str) -> int | None:
    """Find the skip store in which integers wait.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    name
        The layer that makes the integers.
    on
        NPU of each layer.
    adder
        The layer that adds them.

    Returns
    -------
    int or None
        The NPU after; None for the NPU that makes them.

    Raises
    ------
    ValueError
        The NPU of the adder is neither, or has other steps.
    """
    here, there = on[name], on[adder]
    if there == here:
        return None
    way(npus, name, here, there)
    steps = [(npus[n].engine, npus[n].kgp, npus[n].ol) for n in (here, there)]
    if steps[0] != steps[1]:
        raise ValueError(
            f"{name}: NPU {there} must have steps as NPU {here} has them, where {adder} adds the integers, "
            f"{_steps(steps[0])}, got {_steps(steps[1])}"
        )
    return there


def _steps(of: tuple[str, int, int]) -> str:
    """Engine, kgp and ol of an NPU in words."""
    return "engine {}, kgp = {}, ol = {}".format(*of)


def check_kept(network: str, npus: Sequence[Folding], ways: Mapping[str, MapWay], on: Mapping[str, int]) -> None:
    """Raise ValueError unless the integers that a binary NPU keeps wait in one skip store, which nobody else fills."""
    fills: dict[int, tuple[str, int]] = {}  # NPU -> one of its maps, and the store that it waits in
    filled: dict[int, tuple[str, int]] = {}  # store -> one of its maps, and the NPU that makes it
    for name, one in ways.items():
        maker = on[name]
        if npus[maker].engine != "binary" or one.adder is None:
            continue
        store = one.store(maker)
        other, before = fills.setdefault(maker, (name, store))
        if before != store:
            raise ValueError(
                f"{network}: the integers that NPU {maker} keeps must wait in one skip store, got those of {other} in "
                f"NPU {before} and those of {name} in NPU {store}"
            )
        other, before = filled.setdefault(store, (name, maker))
        if before != maker:
            raise ValueError(
                f"{network}: the integers in the skip store of NPU {store} must come from one NPU, got those of "
                f"{other} from NPU {before} and those of {name} from NPU {maker}"
            )


def onward(npus: Sequence[Folding], ways: Mapping[str, MapWay], on: Mapping[str, int]) -> dict[int, int]:
    """By number of a binary NPU that keeps integers: 1 where they wait in the skip store of the next NPU, 0 where they
    do in its own."""
    kept = {on[name]: one for name, one in ways.items() if one.adder and npus[on[name]].engine == "binary"}
    return {n: int(one.store(n) != n) for n, one in kept.items()}


def with_equal_steps(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """The NPUs with integers of one width where they keep them for each other."""
    bits = [npu.skip_bits for npu in npus]
    for _ in npus:  # once round a ring
        for n, npu in enumerate(npus):
            if npu.skips_onward:
                after = (n + 1) % len(npus)
                bits[n] = bits[after] = max(bits[n], bits[after])
    return tuple(replace(npu, skip_bits=most) for npu, most in zip(npus, bits))
