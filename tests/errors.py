import re

import pytest

try:
    from grpc import RpcError
except ModuleNotFoundError:  # before version 4, pynq has no remote protocol, and doesn't bring grpc
    REMOTE_ERRORS: tuple[type[Exception], ...] = ()
else:
    REMOTE_ERRORS = (RpcError,)
"""What a client of PYNQ's remote protocol raises."""


def value_error(message: str):
    """Context in which a ValueError with exactly this message must be raised."""
    return pytest.raises(ValueError, match=rf"^{re.escape(message)}\Z")


OR_A_FILE = "or a model file, <name>.npz (how to make one: docs/how-to/network.md)"
"""What a message says of a name that is neither a network's nor that of a model file."""
