"""Reference foldings: how parallel the designs of the demo and of the figures are."""

from hls_gen.design import Npu

DIGITS = Npu(kfp=32, kgp=16, pfp=16, ol=4, planes=6)
"""digits-cnn: conv_1 reads 5-bit pixels as 6 bit planes side by side."""

FOLDINGS: dict[str, Npu] = {"digits-cnn": DIGITS}
