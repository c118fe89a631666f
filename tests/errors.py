import re

import pytest


def value_error(message: str):
    """Context in which a ValueError with exactly this message must be raised."""
    return pytest.raises(ValueError, match=rf"^{re.escape(message)}\Z")


OR_A_FILE = "or a model file, <name>.npz (how to make one: docs/how-to/network.md)"
"""What a message says of a name that is neither a network's nor that of a model file."""
