"""The manifest of loop.v."""

from bitloom.hls_gen.design.manifest import VLNV

IDENT, VERSION, DIGEST_0, CONTROL, STATUS = 0x000, 0x004, 0x008, 0x020, 0x024
IRQ_ENABLE, IRQ_STATUS, CYCLES, WORDS_IN, WORDS_OUT, ADDEND, FAULT = 0x040, 0x044, 0x050, 0x058, 0x05C, 0x100, 0x104


def _register(name, offset, access, *fields):
    parts = [{"name": n, "lsb": lsb, "width": width, "description": n.lower()} for n, lsb, width in fields]
    return {"name": name, "offset": offset, "access": access, "description": f"{name} & more <", "fields": parts}


REGISTERS = [
    _register("IDENT", IDENT, "RO"),
    _register("VERSION", VERSION, "RO", ("PATCH", 0, 8), ("MINOR", 8, 8), ("MAJOR", 16, 16)),
    _register("DIGEST_0", DIGEST_0, "RO"),
    _register("CONTROL", CONTROL, "RW", ("START", 0, 1), ("SOFT_RESET", 1, 1), ("CLEAR_COUNTERS", 2, 1)),
    _register("STATUS", STATUS, "RO", ("IDLE", 0, 1)),
    _register("IRQ_ENABLE", IRQ_ENABLE, "RW", ("RESULT", 0, 1)),
    _register("IRQ_STATUS", IRQ_STATUS, "RW1C", ("RESULT", 0, 1)),
    _register("CYCLES", CYCLES, "RO"),
    _register("WORDS_IN", WORDS_IN, "RO"),
    _register("WORDS_OUT", WORDS_OUT, "RO"),
    _register("ADDEND", ADDEND, "RW"),
    _register("FAULT", FAULT, "RW", ("NUMBER", 0, 8)),
]


def loop_manifest(stream_bits=32):
    """As the generator writes it, without NPUs."""
    return {
        "format": "bitloom-manifest",
        "version": 1,
        "name": "loop",
        "digest": "0123456789abcdef" * 4,
        "stream_bits": stream_bits,
        "npus": [],
        "registers": REGISTERS,
        "vlnv": VLNV,
        "top": "bitloom_top",
        "spill_words": 0,
        "verilog": "bitloom_top.v",
    }
