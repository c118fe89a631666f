"""The C functions of harness.cpp as Python callables."""

import ctypes
from ctypes import POINTER, c_char_p, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from types import SimpleNamespace

FAILED = -2  # what a call returns after a protocol violation
"""Result of a call after a broken rule of a protocol."""

# enum Stop of harness.cpp; the order is the order in which run() names what it stopped at.
STOP = {"words": 1, "sink_closed": 4, "source_empty": 2, "interrupt": 8, "dma": 32, "idle": 16}

# struct State of harness.cpp
STATE_FIELDS = (
    *("cycle", "progress_cycle", "words_taken", "words_given", "lasts_given"),
    *("source_queued", "sink_queued", "sink_credit", "source_stalls", "sink_stalls"),
    *("s_axis_tvalid", "s_axis_tready", "s_axis_tdata", "s_axis_tlast"),
    *("m_axis_tvalid", "m_axis_tready", "m_axis_tdata", "m_axis_tlast"),
    "interrupt",
)


class WriteShape(ctypes.Structure):
    """How a register write is put on the bus: struct WriteShape of harness.cpp."""

    _fields_ = (
        ("strobes", c_uint32),
        ("address_delay", c_uint32),
        ("data_delay", c_uint32),
        ("response_delay", c_uint32),
        ("forgive", c_uint32),
    )


SIGNATURES = {
    "new": (c_void_p, []),
    "delete": (None, [c_void_p]),
    "reset": (c_int64, [c_void_p, c_uint64]),
    "push": (None, [c_void_p, c_void_p, c_void_p, c_uint64]),
    "pop": (c_uint64, [c_void_p, c_void_p, c_void_p, c_uint64]),
    "clear_source": (None, [c_void_p]),
    "sink": (None, [c_void_p, c_uint64, c_uint32]),
    "stalls": (None, [c_void_p, c_uint64, c_uint64, c_uint64]),
    "checks": (None, [c_void_p, c_uint32, c_uint32]),
    "run": (c_int64, [c_void_p, c_uint64, c_uint32, c_uint64, c_uint64]),
    "write": (c_int64, [c_void_p, c_uint32, c_uint32, c_uint32, POINTER(WriteShape), c_uint64]),
    "read": (c_int64, [c_void_p, c_uint32, c_uint32, POINTER(c_uint32), c_uint32, c_uint64]),
    "state_size": (c_uint64, []),
    "state": (None, [c_void_p, POINTER(c_uint64)]),
    "cycles": (c_uint64, [c_void_p]),
    "interrupt": (c_uint32, [c_void_p]),
    "dma_interrupts": (c_uint32, [c_void_p]),
    "memory": (None, [c_void_p, c_void_p, c_uint64, c_uint64, c_uint64, c_uint64]),
    "touch": (None, [c_void_p]),
    "message": (c_char_p, [c_void_p]),
    "waveform_open": (c_int64, [c_void_p, c_char_p]),
    "waveform_close": (c_int64, [c_void_p]),
}
"""Result and arguments of each function, without the ``bitloom_`` in front of its name."""


def load(library: Path) -> SimpleNamespace:
    """The functions of a model's shared object, by their names without ``bitloom_``.

    Raises
    ------
    RuntimeError
        If the library was made from another harness.cpp.
    """
    loaded = ctypes.CDLL(str(library))
    calls = SimpleNamespace(library=loaded)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(loaded, f"bitloom_{name}")
        function.restype = result
        function.argtypes = arguments
        setattr(calls, name, function)
    if calls.state_size() != len(STATE_FIELDS):
        raise RuntimeError(f"{library}: its state has {calls.state_size()} fields, library.py has {len(STATE_FIELDS)}")
    return calls
