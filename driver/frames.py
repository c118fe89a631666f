"""The data that the driver sends: a program's parameters; and for each frame a packet, between packets of streamed
weights.

    block of a frame:  WEIGHTS ... | FRAME header, payload | WEIGHTS ...
    send buffer:       block, block, ...

Transfers are as long as the DMA allows, and end where packets end.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.integers import integer
from bitloom.hls_gen.design.headers import HEADER_WORDS, Words
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packets import cleared, frame_header, packets, renumber, split_packets, transfers
from bitloom.hls_gen.design.program import Program

from .errors import DigestMismatch

BATCH_BYTES = 1 << 20
"""Bytes of a batch at most by default, in either direction: enough to hide the start of a transfer."""


class Frames:
    """Blocks of a program's frames.

    Parameters
    ----------
    manifest
        Manifest of the hardware.
    program
        The program whose frames are sent.
    limit
        Words that a transfer, and so a packet, may have.

    Attributes
    ----------
    words
        32-bit words of a block.
    packets
        Packets of a block; packets are numbered one after another.

    Raises
    ------
    ValueError
        A packet is longer than ``limit``, or the device would refuse one.
    """

    def __init__(self, manifest: Manifest, program: Program, limit: int) -> None:
        self._manifest = manifest
        self._program = program
        self._limit = limit
        cut = program.weights_before
        before, after = (
            [] if not len(part) else list(split_packets(manifest, part, limit, f"{program.name}: weights", "WEIGHTS"))
            for part in (program.weights[:cut], program.weights[cut:])
        )
        self._before, self._after = _joined(before), _joined(after)
        lengths = [*map(len, before), HEADER_WORDS + program.payload_words, *map(len, after)]
        self._ends = np.cumsum(lengths)  # of the packets in a block
        self.words = int(self._ends[-1])
        self.packets = len(lengths)

    def fill(self, out: NDArray[np.uint32], images: NDArray[Any], signature: int, number: int) -> None:
        """Write the blocks of n images. The last frame ends the results.

        The images are checked here, however they were checked before: whoever calls may have changed them since.

        Parameters
        ----------
        out
            (n * words,) uint32.
        images
            (n, H, W, C) integers.
        signature
            Of the parameters in the device.
        number
            Packets of blocks that were sent before, since the parameters were loaded.

        Raises
        ------
        ValueError
            The images don't suit the network.
        """
        blocks = out.reshape(len(images), self.words)
        program = self._program
        first = len(self._before)
        payload = first + HEADER_WORDS
        blocks[:, :first] = self._before
        for end, last in ((slice(None), False), (slice(-1, None), True)):
            header = frame_header(self._manifest, program.frame_words, last, signature=signature)
            blocks[end, first:payload] = header
        program.pack_images(images, out=blocks[:, payload : payload + program.payload_words])
        blocks[:, payload + program.payload_words :] = self._after
        numbers = number + self.packets * np.arange(len(images))
        for place, begin in enumerate((0, *self._ends[:-1])):
            renumber(blocks[:, begin:], numbers + place)

    def batch(self, limit: int, wanted: int | None) -> int:
        """Frames of a batch: results come in one transfer, and frames go in one too unless weights are streamed.

        Parameters
        ----------
        limit
            Bytes that a DMA transfer may have.
        wanted
            Frames that were asked for; None: as many as BATCH_BYTES hold.

        Raises
        ------
        ValueError
            The results of so many frames don't fit a transfer.
        """
        program = self._program
        results = 4 * self._program.result_words
        longest = max(4 * self.words, results)
        most = limit // (results if len(program.weights) else longest)
        if wanted is None:
            return max(1, min(most, BATCH_BYTES // longest))
        wanted = integer(f"{program.name}: batch", wanted)
        if not 1 <= wanted <= most:
            raise ValueError(f"{program.name}: batch must be 1..{most} (DMA transfers), got {wanted}")
        return wanted

    def transfers(self, count: int) -> list[int]:
        """Where the transfers of ``count`` blocks end, in words; each ends with a packet."""
        if count * self.words <= self._limit:
            return [count * self.words]
        ends = list[int]()
        begin = 0
        end = 0
        for place in (np.arange(count)[:, None] * self.words + self._ends).ravel().tolist():
            if place - begin > self._limit:
                ends.append(end)
                begin = end
            end = place
        return [*ends, end]


def _joined(parts: Iterable[Words]) -> Words:
    return np.concatenate([np.zeros(0, np.uint32), *parts])


def loads(program: Program, manifest: Manifest, limit: int) -> list[Words]:
    """A program's parameters as transfers, checked as far as that needs no device.

    Rows of memories that the program doesn't write are written with 0 first, so that results depend on the program
    alone, and on no other user's.

    Parameters
    ----------
    program
        The program.
    manifest
        Manifest of the hardware.
    limit
        Bytes that a DMA transfer may have.

    Raises
    ------
    DigestMismatch
        The program was compiled for another design.
    ValueError
        The program isn't what the manifest says, or a packet doesn't fit a transfer.
    """
    if program.design_digest != manifest.digest:
        raise DigestMismatch(
            f"{program.name}: the program must be for the design {manifest.digest[:32]} "
            f"({manifest.name}), got one for {program.design_digest[:32]}",
            manifest.digest,
            program.design_digest,
        )
    payload = manifest.frame_payload(program.frame_words)
    if program.payload_words != payload:
        raise ValueError(f"{program.name}: a frame's payload must be {payload} words, got {program.payload_words}")
    if program.result_words % manifest.stream_words:
        raise ValueError(
            f"{program.name}: result_words must fill stream words of {manifest.stream_bits} "
            f"bits, got {program.result_words}"
        )
    for what, count in (("frame", HEADER_WORDS + payload), ("result", program.result_words)):
        if 4 * count > limit:
            raise ValueError(
                f"{program.name}: a {what} must fit a DMA transfer of {limit} bytes "
                f"(c_sg_length_width), got {4 * count} bytes"
            )
    _check_memories(program, manifest)
    Frames(manifest, program, limit // 4)
    words = np.concatenate([cleared(manifest, program.parameters, program.name), program.parameters])
    return list(transfers(manifest, words, limit // 4, program.name))


def _check_memories(program: Program, manifest: Manifest) -> None:
    """ValueError unless each NPU gets its network row, and kernels where it gets layers with results."""
    loaded = {(head.npu, m.name) for head, m, _ in packets(manifest, program.parameters, program.name)}
    streamed = {(head.npu, m.name) for head, m, _ in packets(manifest, program.weights, program.name, "WEIGHTS")}
    for n in range(len(manifest.npus)):
        for name in ("network", *["kernels"] * ((n, "results") in loaded)):
            if (n, name) not in loaded | streamed:
                raise ValueError(
                    f"{program.name}: parameters must load memory {name} of NPU {n}, got packets for others only"
                )
