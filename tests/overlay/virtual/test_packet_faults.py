"""Streams of whole packets that were lost, doubled, moved or cut on the way: never a wrong result without an error.

The raw model, without driver: what the device itself notices. Every fault at every place; then a reset and the whole
stream again, which must be right.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import BAD_ORDER, BAD_PROGRAM
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packets import frame_header, renumber, split_packets
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.registers import ADDRESS_BITS
from bitloom.hls_gen.design.signature import loads_signature
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.sim import Simulation
from tests.cases import random_images, random_model
from tests.graph_text import network_of
from tests.npus import integer_npu

FRAMES = 3
SPARE = 200
"""Cycles that a damaged stream may take longer than the right one: its faults have long been found."""
INTEGER = integer_npu(6, 5, 20, kfp=3, kgp=4, pfp=2, ol=2)
NETWORK = network_of(
    "1x2x5 s6",
    "dense fc_1 9 s4, requantise_1 s6 relu=yes, dense fc_2 11 s5, requantise_2 s6 relu=yes, dense fc_3 6 s3",
    name="three",
)
Packets = list[np.ndarray]


@dataclass
class Rig:
    """A device, the packets of a load and of some frames, the words that must come out, and cycles that suffice."""

    simulation: Simulation
    manifest: Manifest
    loads: Packets
    frames: Packets
    expected: np.ndarray
    cycles: int = 1 << 14

    def register(self, name: str) -> int:
        """A register of the device."""
        return self.simulation.read_register(self.manifest.register(name).offset)

    def reset(self) -> None:
        """As the driver begins: reset, START."""
        self.simulation.reset()
        control = self.manifest.register("CONTROL")
        self.simulation.write_register(control.offset, control.field("START").at(1))

    def send(self, packets: Packets) -> np.ndarray:
        """Send packets one behind the other; the words that have come out in the end."""
        self.simulation.send(np.concatenate([np.zeros(0, np.uint32), *packets]))
        self.simulation.run(self.cycles)
        self.simulation.clear_source()
        return self.simulation.received()[0]

    @property
    def stream(self) -> Packets:
        """The whole stream."""
        return [*self.loads, *self.frames]


def packets_of(manifest: Manifest, program: Program, images: np.ndarray) -> tuple[Packets, Packets]:
    """Packets of a load, and those of frames, among which are weights that are streamed."""
    asked = loads_signature(manifest, program.parameters)
    parts = [program.weights[: program.weights_before], program.weights[program.weights_before :]]
    before, after = (
        list(split_packets(manifest, part, 1 << 20, kind="WEIGHTS")) if len(part) else [] for part in parts
    )
    frames = list[np.ndarray]()
    for k, payload in enumerate(program.pack_images(images)):
        header = frame_header(manifest, program.frame_words, k == len(images) - 1, signature=asked)
        frames += (packet.copy() for packet in (*before, np.concatenate([header, payload]), *after))
    for number, packet in enumerate(frames):
        renumber(packet, np.array(number))
    return list(split_packets(manifest, program.parameters, 1 << 20)), frames


@contextmanager
def checked_rig(model: Model, design: Design, images: np.ndarray) -> Iterator[Rig]:
    """A rig whose right stream gives golden's results."""
    verilog = generate(design)
    manifest = Manifest.from_dict(verilog.manifest)
    program = compile_model(model, manifest)
    loads, frames = packets_of(manifest, program, images)
    registers = verilog.manifest["registers"]
    with Simulation.build(verilog.text, stream_bits=design.stream_bits, registers=registers) as simulation:
        rig = Rig(simulation, manifest, loads, frames, np.zeros(0, np.uint32))
        rig.reset()
        begin = simulation.cycles
        simulation.send(np.concatenate(rig.stream))
        words = simulation.receive(len(images) * program.result_words)
        np.testing.assert_array_equal(program.unpack_results(words), model.forward(images))
        yield replace(rig, expected=words, cycles=simulation.cycles - begin + SPARE)


def three_layers(streamed: bool, stream_bits: int) -> tuple[Model, Design]:
    """A network, and a design with room for two of its layers in the kernel memory if weights are ``streamed``."""
    model = random_model(NETWORK, np.random.default_rng(5))
    sizing = Sizing(stream_weights=streamed)
    return model, size_memories("three", [model], INTEGER, stream_bits=stream_bits, sizing=sizing)


KINDS = {"streamed": (True, 32), "resident": (False, 64)}


@pytest.fixture(scope="module", params=KINDS)
def rig(request) -> Iterator[Rig]:
    model, design = three_layers(*KINDS[request.param])
    with checked_rig(model, design, random_images(model, FRAMES, np.random.default_rng(6))) as rig:
        assert (len(rig.frames) > FRAMES) == (request.param == "streamed")
        yield rig


def noticed(rig: Rig, packets: Packets, what: str) -> int:
    """The error that a damaged stream gives, 0 for none; never a word that is not right without an error."""
    rig.reset()
    words = rig.send(packets)
    code = rig.register("ERROR_CODE")
    right = np.array_equal(words, rig.expected[: len(words)])
    assert right or code, f"{what}: wrong words and no error"
    assert code or len(words) < len(rig.expected), f"{what}: taken for the whole stream"
    return code


def right_again(rig: Rig) -> None:
    """After a reset the whole stream gives what it should."""
    rig.reset()
    np.testing.assert_array_equal(rig.send(rig.stream), rig.expected)
    assert rig.register("ERROR_CODE") == 0


def swapped(packets: Packets, a: int, b: int) -> Packets:
    """The stream with two packets in each other's place."""
    moved = list(packets)
    moved[a], moved[b] = moved[b], moved[a]
    return moved


def test_lost(rig):
    """Each packet: an error, but for the last ones, without which the results are short."""
    for k in range(len(rig.stream)):
        code = noticed(rig, rig.stream[:k] + rig.stream[k + 1 :], f"packet {k} lost")
        assert code or k == len(rig.stream) - 1
    right_again(rig)


def test_all_loads_lost_but_the_network_row(rig):
    """Results would come: it is the load that isn't whole."""
    assert noticed(rig, [rig.loads[-1], *rig.frames], "loads lost") in (BAD_PROGRAM, BAD_ORDER)
    assert noticed(rig, [rig.loads[-1], *rig.frames[1:]], "loads lost") in (BAD_PROGRAM, BAD_ORDER)


def test_doubled(rig):
    """Each packet, at once and at the end of the stream."""
    for k, packet in enumerate(rig.stream):
        assert noticed(rig, [*rig.stream[: k + 1], packet, *rig.stream[k + 1 :]], f"packet {k} doubled")
    for k, packet in enumerate(rig.frames):
        rig.reset()
        rig.send([*rig.stream, packet])
        assert rig.register("ERROR_CODE") == BAD_ORDER, f"packet {k} of frames again, at the end"
    right_again(rig)


@pytest.mark.parametrize("words", [1, 2])
def test_cut(rig, words):
    """The last stream words of each packet are missing, and no tlast says so: all behind is out of step."""
    step = rig.manifest.stream_words
    for k, packet in enumerate(rig.stream):
        noticed(rig, [*rig.stream[:k], packet[: len(packet) - words * step], *rig.stream[k + 1 :]], f"packet {k} cut")
    right_again(rig)


def test_a_packet_cut_by_as_much_as_another_has(rig):
    """So that the stream is in step again: rows of one packet are taken for those of another."""
    for k, (packet, after) in enumerate(zip(rig.loads, rig.loads[1:])):
        if len(packet) - 4 >= len(after):
            cut = packet[: len(packet) - len(after)]
            assert noticed(rig, [*rig.loads[:k], cut, *rig.loads[k + 1 :], *rig.frames], f"packet {k} cut")
    right_again(rig)


def test_changed_parameters(rig):
    """A bit of any packet of parameters."""
    draw = random.Random(3)
    for k, packet in enumerate(rig.loads):
        changed = packet.copy()
        changed[draw.randrange(4, len(packet))] ^= 1 << draw.randrange(32)
        assert noticed(rig, [*rig.loads[:k], changed, *rig.loads[k + 1 :], *rig.frames], f"packet {k} changed")
    right_again(rig)


def test_swapped(rig):
    """A sample of all pairs; neighbours among frames and weights are all in it."""
    count, first = len(rig.stream), len(rig.loads)
    pairs = [*random.Random(1).sample(list(combinations(range(count), 2)), 30)]
    for a, b in {*pairs, *((k, k + 1) for k in range(first, count - 1))}:
        code = noticed(rig, swapped(rig.stream, a, b), f"packets {a} and {b} swapped")
        assert code or a < first <= b  # a LOAD among frames may wait for ever for one that waits for its weights
    right_again(rig)


@pytest.mark.slow
def test_all_pairs(rig):
    """Swapped; one in the place of another; moved."""
    for a, b in combinations(range(len(rig.stream)), 2):
        noticed(rig, swapped(rig.stream, a, b), f"packets {a} and {b} swapped")
        for source, place in ((a, b), (b, a)):
            moved = list(rig.stream)
            moved[place] = moved[source]
            noticed(rig, moved, f"packet {source} in the place of packet {place}")
            order = [k for k in range(len(rig.stream)) if k != source]
            order.insert(place, source)
            noticed(rig, [rig.stream[k] for k in order], f"packet {source} moved to {place}")
    right_again(rig)


# Registers of the same device: every address answers, whatever the loader does


MOST_CYCLES = 64
"""Cycles in which an access is answered: a round of counters, and few more."""


def prepared(rig: Rig, state: str) -> None:
    """The device with its loader in a state that lasts."""
    rig.reset()
    control = rig.manifest.register("CONTROL")
    half = rig.loads[0][: len(rig.loads[0]) - rig.manifest.stream_words]
    if state == "JUDGE":  # a frame waits for START
        rig.simulation.write_register(control.offset, 0)
        rig.send(rig.loads)
        first = next(k for k, packet in enumerate(rig.frames) if packet[0] & 15 == 2)
        rig.send(rig.frames[: first + 1])
    sent = {
        "HEADER": rig.stream,
        "LOAD": [half],
        "FRAME": [*rig.loads, *rig.frames[:-1], rig.frames[-1][: len(rig.frames[-1]) - rig.manifest.stream_words]],
        "DRAIN": [*rig.loads, *rig.loads, *rig.frames],
        "JUDGE": [],
    }[state]
    rig.send(sent)


@pytest.mark.sample(3)
@pytest.mark.parametrize("state", ["HEADER", "LOAD", "FRAME", "JUDGE", "DRAIN"])
def test_every_address_answers(rig, state):
    """Reads and writes of all 4,096 addresses within a fixed number of cycles, on the raw model."""
    prepared(rig, state)
    simulation = rig.simulation
    used = {r.offset: r for r in rig.manifest.registers}
    for address in range(1 << ADDRESS_BITS):
        begin = simulation.cycles
        value, response = simulation.try_read(address)
        assert response == ("SLVERR" if address % 4 else "OKAY"), hex(address)
        assert value == 0 or address in used, hex(address)
        register = used.get(address)
        if register is None or register.access == "RO":
            assert simulation.try_write(address, 0xFFFFFFFF) == response, hex(address)
        assert simulation.cycles - begin <= 2 * MOST_CYCLES, hex(address)
    assert rig.register("IDENT") == 0x424C4D31
    right_again(rig)
