"""Images of scikit-learn's digits."""

import pytest

from bitloom.golden.zoo.digits import Digits, load_digits


@pytest.fixture(scope="package")
def digits() -> Digits:
    pytest.importorskip("sklearn", reason="the images come from scikit-learn: pip install 'bitloom-fpga[cli]'")
    return load_digits()
