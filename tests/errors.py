import re

import pytest


def value_error(message: str):
    """Context in which a ValueError with exactly this message must be raised."""
    return pytest.raises(ValueError, match=rf"^{re.escape(message)}\Z")
