"""Campaign device: damaged streams, resets at any cycle, accesses to any register and two users, on a running device.

A case is a network on a design, as campaign networks makes it, and what is done to the words that the driver sent for
it. Whatever that is: every register access is answered; where the device reports no error and gives as many words as
were due, they are right; nobody gets results of another user's program; and after a reset the next frames are right.

Data of a frame may be any, so nobody can see that they were changed: after such damage only the last is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.driver.errors import DeviceError
from bitloom.hls_gen.design.headers import HEADER_WORDS, PacketHeader
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.fuzz.campaign import Case
from bitloom.overlay.fuzz.hardware import STUCK_CYCLES, Hardware, hardware
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.virtual.sim import ProtocolError, SimulationTimeout

from .networks import compiled, network_case

DESIGNS = ("k3_g5", "ring_of_2", "k64_g64", "integer_cascade", "streamed", "int_blocks")
QUIET_CYCLES = 20_000
"""Cycles without progress after which an attacked device is taken to be done."""
MOST_STEPS = 200
STEP_CYCLES = 50_000
ORDER = ("drop", "double", "swap")
"""Damage to whole packets."""
EDITS = ("flip_header", "flip_load", "flip_any", "cut", "insert", "last", *ORDER)
"""Kinds of damage to a stream."""
UNSEEN = {"flip_any"}
"""Damage that may be to the data of a frame."""
USES = ("load", "predict", "predict", "reset")
"""Actions of a user; an entry that stands twice is picked twice as often."""
NUMBER = 1 << 20
"""Choices are made below this number, and taken modulo the number of things to choose from."""


@dataclass
class Packet:
    """Stream words that belong together."""

    words: np.ndarray
    """(n, words of a stream word) uint32."""
    lasts: np.ndarray
    """(n,) bool, tlast."""
    load: bool
    """Whether it is a LOAD."""


def packets_of(manifest: Manifest, program: Program, transfers: Sequence[np.ndarray]) -> list[Packet]:
    """The packets that a driver sent for a program."""
    per_word = manifest.stream_words
    packets = list[Packet]()
    for transfer in transfers:
        at = 0
        while at < len(transfer):
            header = PacketHeader.of(*(int(word) for word in transfer[at : at + HEADER_WORDS - 1]))
            length = program.payload_words
            if header.kind != manifest.packet_kinds["FRAME"]:
                load = header.kind == manifest.packet_kinds["LOAD"]
                memories = {m.id: m for m in memory_map(manifest.npus[header.npu])}
                target = memories[header.memory] if load else manifest.memory(header.npu, "kernels")
                length = header.length * manifest.padded(target.width)
            end = at + HEADER_WORDS + length
            words = transfer[at:end].reshape(-1, per_word).copy()
            lasts = np.zeros(len(words), bool)
            lasts[-1] = end == len(transfer)
            packets.append(Packet(words, lasts, header.kind == manifest.packet_kinds["LOAD"]))
            at = end
    return packets


def edited(packets: list[Packet], edits: Sequence[Sequence[Any]]) -> list[Packet]:
    """Packets after the edits, each a kind and three numbers. Half of the edits are of a LOAD, though there are many
    more LOADs than frames."""
    for kind, *numbers in edits:
        loads = [k for k, packet in enumerate(packets) if packet.load]
        others = [k for k, packet in enumerate(packets) if not packet.load]
        chosen = loads if kind == "flip_load" or numbers[0] % 2 else others
        chosen = chosen or loads or others
        which = chosen[numbers[0] // 2 % len(chosen)]
        packet = packets[which]
        place = numbers[1] % len(packet.words)
        if kind.startswith("flip"):
            bit = numbers[2] % (32 * packet.words.shape[1])
            head = HEADER_WORDS // packet.words.shape[1]
            place = place % head if kind == "flip_header" else place
            packet.words[place, bit // 32] ^= np.uint32(1 << bit % 32)
        elif kind == "cut":
            gone = slice(place, place + 1 + numbers[2] % 3)
            packet.words, packet.lasts = np.delete(packet.words, gone, 0), np.delete(packet.lasts, gone)
        elif kind == "insert":
            packet.words = np.insert(packet.words, place, numbers[2], 0)
            packet.lasts = np.insert(packet.lasts, place, False)
        elif kind == "last":
            packet.lasts[place] = True
        elif kind == "swap":
            other = (which + 1) % len(packets)
            packets[which], packets[other] = packets[other], packet
        else:
            packets[which : which + 1] = [packet] * (2 if kind == "double" else 0)
        packets = [packet for packet in packets if len(packet.words)]
        if not packets:
            break
    return packets


class DeviceCampaign:
    """Attacks on a running device.

    Parameters
    ----------
    designs
        Names of the designs that are picked from.
    """

    def __init__(self, designs: Sequence[str] = DESIGNS):
        self._designs = designs

    def case(self, pick: Pick) -> Case:
        """A network, and up to three edits of its stream, four accesses of registers and a reset, or two users."""
        edits = [[pick.of(EDITS), *(pick.integer(0, NUMBER) for _ in range(3))] for _ in range(pick.integer(0, 3))]
        accesses = [
            [pick.integer(0, 3000), pick.of(["read", "write"]), pick.integer(0, 0xFFF), pick.integer(0, 2**32 - 1)]
            for _ in range(pick.integer(0, 4))
        ]
        reset = pick.integer(0, 20_000) if pick.flip() else None
        count = 0 if pick.integer(0, 4) else pick.integer(2, 8)
        users = [[pick.integer(0, 1), pick.of(USES)] for _ in range(count)]
        attacks = {"edits": edits, "accesses": accesses, "reset": reset, "users": users}
        return {**network_case(pick, self._designs), **attacks}

    def run(self, case: Case) -> tuple[str, str]:
        """Run a case; faults are an access without an answer, a wrong result, and no recovery after a reset."""
        given = compiled(case)
        if given is None:
            return "unfit", ""
        target, program, images, expected = given
        try:
            target.board.stall()
            outputs, transfers = target.recorded(program, images)
            if not np.array_equal(outputs, expected):
                return "wrong", f"{case['design']}: outputs must equal golden before the attack, and don't"
            if case.get("users"):
                word, what = shared(target, (given, compiled({**case, "seed": case["seed"] ^ 1})), case)
            else:
                word, what = attack(target, program, transfers, case, expected)
            if not what and not np.array_equal(target.outputs(program, images), expected):
                return "not recovered", f"{case['design']}: outputs must equal golden after a reset, and don't"
        except ProtocolError as error:
            hardware.cache_clear()  # the model has ended
            return "protocol", f"{case['design']}: the streams' protocol must be kept, got: {error}"
        except (SimulationTimeout, DeviceError) as error:
            hardware.cache_clear()  # it may never answer again
            return "no answer", f"{case['design']}: the device must answer, got: {str(error).splitlines()[0]}"
        return word, what


def _other_frames(sent: Sequence[Packet], packets: Sequence[Packet]) -> bool:
    """Whether only values of frames differ, as where a word that was put into a frame makes up for one that is cut out
    of it."""

    def fixed(packet: Packet) -> tuple[object, ...]:
        """Everything of a packet but a frame's values."""
        head = HEADER_WORDS // packet.words.shape[1]
        words = packet.words if packet.load else packet.words[:head]
        return packet.load, packet.words.shape, words.tobytes(), packet.lasts.tobytes()

    return list(map(fixed, sent)) == list(map(fixed, packets))


def attack(
    target: Hardware, program: Program, transfers: Sequence[np.ndarray], case: Case, expected: np.ndarray
) -> tuple[str, str]:
    """Send a damaged stream to a device, and check the results."""
    names = {error.name for error in target.manifest.errors}
    edits = [edit for edit in case["edits"] if edit[0] not in ORDER or "BAD_ORDER" in names]
    headers = [edit for edit in edits if edit[0] == "flip_header"]
    edits = [edit for edit in edits if edit not in headers[1:]]  # two flips of one bit are no error to the check
    sent = packets_of(target.manifest, program, transfers)
    packets = edited(packets_of(target.manifest, program, transfers), edits)
    target.accelerator.close()
    target.accelerator.reset()
    target.board.timeout_cycles = QUIET_CYCLES
    simulation = target.simulation
    try:
        simulation.stall(**case["stalls"], seed=case["seed"])
        simulation.open_sink()
        for packet in packets:
            simulation.send(packet.words.ravel(), packet.lasts)
        if case["reset"] is not None and case["reset"] % 2:  # most of the stream is LOADs: every other reset is later
            simulation.step(sum(len(packet.words) for packet in packets if packet.load))
        accessed(target, case)
        for _ in range(MOST_STEPS):
            if simulation.step(STEP_CYCLES, watch=True) == "idle":
                break
        words, lasts = simulation.received()
        code = target.accelerator.registers.read("ERROR_CODE")
    finally:
        simulation.stall()
        target.board.timeout_cycles = STUCK_CYCLES
    blind = UNSEEN | ({"flip_load"} if "BAD_PROGRAM" not in names else set())
    due = len(expected) * program.result_words
    ends = np.flatnonzero(lasts)
    whole = len(ends) and (ends[0] + 1) * target.manifest.stream_words == due
    if code:
        return f"error {code}", ""
    if not whole:
        return "incomplete", ""
    if np.array_equal(program.unpack_results(words[:due]), expected):
        return "right", ""
    if any(edit[0] in blind for edit in edits) or _other_frames(sent, packets):
        return "other data", ""
    return "wrong", f"{case['design']}: a wrong result must have an error code, got ERROR_CODE 0"


def shared(target: Hardware, programs: Sequence[Any], case: Case) -> tuple[str, str]:
    """Let two users, each with a program of its own, use a device in turn; what ``compiled`` gives is theirs."""
    if None in programs:
        return "unfit", ""
    refused = 0
    for user in target.users:
        user.close()  # forgets the program of the case before
    for who, use in case["users"]:
        user = target.users[who]
        _, program, images, expected = programs[who]
        try:
            if use == "load":
                user.load(program)
            elif use == "reset":
                user.reset()
            elif not np.array_equal(user.predict(images, len(images)), expected):
                return "wrong", f"{case['design']}: a user must get results of its own program or an error, got others"
        except DeviceError:
            refused += 1
    return ("refused" if refused else "shared"), ""


def accessed(target: Hardware, case: Case) -> None:
    """Make the register accesses and the reset of a case, each after its cycles; SimulationTimeout if none answers."""
    simulation = target.simulation
    control = target.manifest.register("CONTROL")
    for gap, kind, address, value in case["accesses"]:
        simulation.step(gap)
        if kind == "read":
            simulation.try_read(address)
        else:
            simulation.try_write(address, value)
    if case["reset"] is not None:
        simulation.step(case["reset"])
        simulation.write_register(control.offset, control.field("SOFT_RESET").at(1) | control.field("START").at(1))
