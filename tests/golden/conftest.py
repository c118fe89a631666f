from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """PyTorch, an authority that nobody here wrote. The project itself does not need it."""
    reason = "PyTorch is the authority that this test compares with: pip install torch"
    return pytest.importorskip("torch", reason=reason)
