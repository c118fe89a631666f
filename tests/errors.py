import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bitloom.overlay.importers.errors import ImportRefused

try:
    from grpc import RpcError
except ModuleNotFoundError:  # before version 4, pynq has no remote protocol, and doesn't bring grpc
    REMOTE_ERRORS: tuple[type[Exception], ...] = ()
else:
    REMOTE_ERRORS = (RpcError,)
"""Errors that a client of PYNQ's remote protocol raises."""


def value_error(message: str):
    """Context in which a ValueError with exactly this message must be raised."""
    return pytest.raises(ValueError, match=rf"^{re.escape(message)}\Z")


@contextmanager
def refusal(*lines: str) -> Iterator[None]:
    """Context in which an import must be refused with exactly these lines."""
    with pytest.raises(ImportRefused) as refused:
        yield
    assert refused.value.lines == lines


OR_A_FILE = "or a model file, <name>.npz (how to make one: docs/how-to/network.md)"
"""Words of a message on a name that is neither a network's nor that of a model file."""
