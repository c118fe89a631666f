"""bitloom_hardware.h: registers, packets, error codes, words and limits of files for C, written from hls_gen.design.

    python -m bitloom.driver.c.hardware_header

writes it anew; a test compares. What differs from design to design, the C side reads from the manifest, as the driver
in Python does: so do the texts of errors, which stand here as comments.
"""

from collections.abc import Iterable, Iterator, Sequence

from bitloom.golden import encoding
from bitloom.golden.atomic import write_bytes
from bitloom.golden.host import file as host_file
from bitloom.golden.limits import FRAME_BITS
from bitloom.hls_gen.design import dma, frame_layout, headers, lane_words, packetizer, partitioned_program, program
from bitloom.hls_gen.design.fields import Field
from bitloom.hls_gen.design.manifest import VLNV
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.registers import (
    ADDRESS_BITS,
    COMMON,
    IDENT,
    NPU_BASE,
    NPU_STRIDE,
    OWNER_BITS,
    VERSION,
    Register,
    npu_registers,
)
from bitloom.hls_gen.design.signature import START, TAPS

from . import FOLDER

FILE = FOLDER / "bitloom_hardware.h"
"""The header."""
PLAIN_NPU = Npu.of(kfp=8, kgp=1, pfp=1, ol=1)
"""An NPU with the registers that all NPUs have, and no others."""


def text() -> str:
    """The whole header."""
    return "\n".join(["/* Written by bitloom.driver.c.hardware_header: don't edit. */", *_lines(), ""])


def _lines() -> Iterator[str]:
    yield from ("#ifndef BITLOOM_HARDWARE_H", "#define BITLOOM_HARDWARE_H", "")
    yield "/* The interface between driver and hardware, and register IDENT. */"
    yield f'#define BITLOOM_VLNV "{VLNV}"'
    yield from (f"#define BITLOOM_INTERFACE_{part} {VERSION[part]}u" for part in ("MAJOR", "MINOR"))
    yield f"#define BITLOOM_IDENT 0x{IDENT:08X}u"
    yield from ("", "/* Registers of the core: byte offsets, and fields as masks. */")
    for register in COMMON:
        yield _define(f"REG_{register.name}", f"0x{register.offset:03X}u", f"{register.access}: {register.description}")
        for field in register.fields:
            yield _define(f"{register.name}_{field.name}", f"0x{field.at(-1):08X}u", field.description)
    yield f"#define BITLOOM_OWNER_BITS {OWNER_BITS}"
    yield from ("", "/* Registers of NPU n. */")
    for register in npu_registers(PLAIN_NPU, 0):
        name = register.name.removeprefix("NPU0_")
        yield f"#define BITLOOM_REG_NPU_{name}(n) (0x{register.offset:03X}u + 0x{NPU_STRIDE:02X}u * (n))"
    yield f"#define BITLOOM_MOST_NPUS {((1 << ADDRESS_BITS) - NPU_BASE) // NPU_STRIDE}"
    yield from ("", "/* The DMA's registers: offsets of both channels, offsets in a channel, and fields as masks. */")
    yield from (f"#define BITLOOM_DMA_{side} 0x{getattr(dma, side):02X}u" for side in ("MM2S", "S2MM"))
    yield from _registers("DMA_", dma.CHANNEL)
    yield from ("", "/* Registers of the packetizer, which makes frames of a raw stream. */")
    yield from _registers("PACKETIZER_", packetizer.REGISTERS)
    yield from ("", "/* Headers of packets: fields of words 0 to 2. Word 3 is NOT (word 0 XOR word 1 XOR word 2). */")
    yield f"#define BITLOOM_HEADER_WORDS {headers.HEADER_WORDS}u"
    for number, fields in enumerate(headers.FIELDS[:3]):
        yield from _of_header(number, fields)
    yield f"#define BITLOOM_MAGIC 0x{headers.MAGIC:02X}u"
    for kind in ("LOAD", "FRAME", "WEIGHTS"):
        yield f"#define BITLOOM_{kind} {getattr(headers, kind)}u"
    yield from (
        "",
        "/* Signature of parameters: x * signature + word, over the polynomial x^32 + these powers of x. */",
    )
    yield f"#define BITLOOM_SIGNATURE_START 0x{START:08X}u"
    yield f"#define BITLOOM_SIGNATURE_POLYNOMIAL 0x{sum(1 << tap for tap in TAPS):08X}u"
    yield from ("", "/* Register ERROR_CODE: the rule that a packet broke. */", "typedef enum bitloom_error_code {")
    for error in headers.ERRORS:
        comma = "," if error is not headers.ERRORS[-1] else ""
        yield f"    BITLOOM_{error.name} = {error.code}{comma} /* {error.rule} */"
    yield "} bitloom_error_code;"
    yield from (
        "",
        "/* Words of a program's file: encodings of the input, and kinds of the maps that leave. */",
    )
    yield from _words("ENCODING", "", encoding.KINDS)
    kinds = frame_layout.RESULT_KINDS
    yield from _words("RESULT_KIND", "RESULT_", tuple(kinds))
    lane_bits = _array(str(kind.lane_bits or 0) for kind in kinds.values())
    yield _define("RESULT_KIND_LANE_BITS", lane_bits, "of each of these, bits of a lane; 0: those of a feature")
    yield _define("RESULT_KIND_PLACES", _array(str(kind.places) for kind in kinds.values()), "lanes of a value at most")
    yield from ("", "/* Files: the version that is read, and what there is at most. */")
    yield _define("PROGRAM_VERSION", str(program.VERSION), "of a program's file")
    yield _define("PARTITIONS_VERSION", str(partitioned_program.VERSION), "of the file of a network in partitions")
    yield _define("HOST_VERSION", str(host_file.VERSION), "of a host file")
    yield _define("MOST_IMAGE_BITS", str(FRAME_BITS.default), "bits of an image")
    yield _define("MOST_WORDS", str(program.MOST_WORDS), "32-bit words of a frame, or of its results")
    yield _define("MOST_VALUES", str(program.MOST_VALUES), "values of a frame's results")
    yield _define("MOST_PROGRAMS", str(partitioned_program.MOST_PROGRAMS), "programs of a network")
    yield _define("MOST_BITS", str(encoding.MOST_BITS), "bits of a value")
    yield _define("MOST_LANES", str(lane_words.MOST_LANES), "lanes of a word")
    yield _define("MOST_LANE_BITS", str(lane_words.MOST_LANE_BITS), "bits of a lane")
    yield from ("", "#endif")


def _registers(prefix: str, registers: Sequence[Register]) -> Iterator[str]:
    for register in registers:
        yield _define(f"{prefix}REG_{register.name}", f"0x{register.offset:02X}u", register.description)
        for field in register.fields:
            yield _define(f"{prefix}{register.name}_{field.name}", f"0x{field.at(-1):08X}u", field.description)


def _words(kind: str, prefix: str, words: Sequence[str]) -> Iterator[str]:
    """Words of a file as an enum, as an array of texts, and as one text for messages."""
    name = f"bitloom_{kind.lower()}"
    members = ", ".join(f"BITLOOM_{prefix}{word.upper()}" for word in words)
    texts = _array(f'"{word}"' for word in words)
    yield f"typedef enum {name} {{ {members} }} {name};"
    yield f"#define BITLOOM_{kind}S {texts}"
    yield f'#define BITLOOM_{kind}S_TEXT "{", ".join(words)}"'


def _array(values: Iterable[str]) -> str:
    return f"{{{', '.join(values)}}}"


def _define(name: str, value: str, meaning: str) -> str:
    return f"#define BITLOOM_{name} {value}" + (f" /* {meaning} */" if meaning else "")


def _of_header(number: int, fields: Sequence[Field]) -> Iterator[str]:
    for field in fields:
        yield _define(f"HEADER_{field.name}_LSB", str(field.lsb), f"word {number}: {field.description}")
        yield f"#define BITLOOM_HEADER_{field.name}_BITS {field.width}"


if __name__ == "__main__":
    write_bytes(FILE, text().encode())
