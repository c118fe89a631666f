"""Damaged parameters of networks that are graphs: what layers read two maps of, add and requantise. A bit of any field
of these memories' rows: never a wrong result without an error; rows that a memory doesn't have are refused. Then a
reset and the whole stream again, which must be right."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.headers import BAD_ORDER, BAD_PROGRAM, BAD_RANGE, PacketHeader
from bitloom.hls_gen.design.npu import Npu
from tests.graph_text import network_of
from tests.networks import random_images, random_model
from tests.npus import integer_npu
from tests.overlay.virtual.test_packet_faults import Rig, checked_rig, noticed, right_again

FRAMES = 2


FIRST = "conv_1 4 1x1 s4, act_1 s6, conv_2 5 1x1 s4, act_2 s6, concat_3 act_1 act_2"
SECOND = "conv_4 4 1x1 s4, act_4 s6, conv_5 4 1x1 s4, act_5 s6, add_6 act_4 act_5 s6"
INTEGERS = network_of("2x3x3 s5", FIRST, SECOND, name="integers")
OF_BITS = "conv_1 4 1x1, act_1 s6, threshold sign_1, conv_2 4 1x1, act_2 s6, add_2 act_2 act_1 s6"
SIGNS = network_of("2x3x4", OF_BITS, "threshold sign_2, conv_3 3 1x1", name="signs")
WIDE = integer_npu(6, 5, 20, kfp=2, kgp=4, pfp=2, ol=2)
RIGS = {
    "integers": (INTEGERS, WIDE, ("inputs", "additions", "scales")),
    "signs": (SIGNS, Npu.of(kfp=4, kgp=4, pfp=4, ol=2), ("additions", "scales", "results")),
}


@pytest.fixture(scope="module", params=RIGS)
def rig(request: pytest.FixtureRequest) -> Iterator[tuple[Rig, tuple[str, ...]]]:
    network, npu, memories = RIGS[request.param]
    model = random_model(network, 3, 18)
    with checked_rig(model, size_memories(network.name, [model], npu), random_images(network, FRAMES, 3)) as ready:
        yield ready, memories


def number_of(rig: Rig, memory: str) -> int:
    """Number of the packet that fills a memory."""
    target = rig.manifest.memory(0, memory)
    heads = [PacketHeader.of(*(int(word) for word in packet[:3])) for packet in rig.loads]
    return next(k for k, head in enumerate(heads) if head.memory == target.id)


def test_every_field(rig: tuple[Rig, tuple[str, ...]]) -> None:
    """The lowest and the highest bit of each field of a row: the parameters are not those that frames ask for."""
    ready, memories = rig
    tried = set()
    for memory in memories:
        place = number_of(ready, memory)
        target = ready.manifest.memory(0, memory)
        for field in target.fields:
            for bit in {field.lsb, field.lsb + field.width - 1}:
                changed = ready.loads[place].copy()
                changed[4 + bit // 32] ^= 1 << bit % 32
                packets = [*ready.loads[:place], changed, *ready.loads[place + 1 :], *ready.frames]
                assert noticed(ready, packets, f"{memory}.{field.name}") in (BAD_PROGRAM, BAD_ORDER)
                tried.add(field.name)
    assert tried >= ({"joins", "first_words_minus_1", "second_words_minus_1"} if "inputs" in memories else {"keeps"})
    right_again(ready)


def test_rows_that_are_not_there(rig: tuple[Rig, tuple[str, ...]]) -> None:
    """A header that is right, but for rows behind the memory's last one."""
    ready, memories = rig
    for memory in memories:
        place = number_of(ready, memory)
        target = ready.manifest.memory(0, memory)
        head = PacketHeader.of(*(int(word) for word in ready.loads[place][:3]))
        behind = replace(head, address=target.depth - head.length + 1)
        changed = np.concatenate([behind.words(), ready.loads[place][4:]])
        packets = [*ready.loads[:place], changed, *ready.loads[place + 1 :], *ready.frames]
        assert noticed(ready, packets, memory) == BAD_RANGE
    right_again(ready)
