"""What searches found before: a line for each design, with its cycles a frame, latency in cycles, LUTs, flip-flops, LUT
RAM, block RAM, DSP blocks, and a digest of its foldings.

A search that is meant to find something else gets the new lines from the message of the test.
"""

import json
from collections.abc import Iterable
from hashlib import sha256

from bitloom.overlay.explore.tries import Row

FRONTS = {
    "digits-cnn, one point": ["334 618 6634 6401 686 21.5 0 2b2fc8c8"],
    "digits-cnn, 8,000 LUTs": [
        "334 618 6634 6401 686 21.5 0 2b2fc8c8",
        "10378 17979 3937 3522 922 3 0 ec220ea4",
        "10688 18537 3904 3489 877 3 0 d3b60187",
        "18128 24865 3257 2966 678 3 0 2486af6e",
        "18528 25265 3229 2934 621 3 0 a80ead62",
        "20920 20932 1943 1816 414 2 0 c8720335",
        "21112 21124 1921 1821 366 2 0 99c71e65",
    ],
    "residual": ["685 788 7364 6114 1450 10 52 9c0f7b54", "780 1372 6101 5039 1088 10.5 44 af6dbe82"],
    "separable": [
        "756 990 13622 9914 2697 7 54 742a0998",
        "882 960 13444 9971 2417 8 56 4c289b6c",
        "7404 7416 3272 2802 751 2.5 10 2686b741",
        "8394 8406 3267 2836 694 2.5 10 2b899363",
    ],
    "residual, nearest": ["26472 26502 2789 2470 516 1.5 5 1ae1bbd0"],
    "residual-separable, nearest": ["16418 16490 4155 3684 1093 2.5 12 55519839"],
}


def lines(rows: Iterable[Row]) -> list[str]:
    """The lines of designs."""
    found = []
    for row in rows:
        foldings = json.dumps(row.candidate.to_dict(), sort_keys=True).encode()
        figures, area = row.figures, row.figures.area
        numbers = (figures.cycles, figures.latency, area.lut, area.ff, area.lutram, area.bram36, area.dsp)
        found.append(" ".join([*(f"{number:g}" for number in numbers), sha256(foldings).hexdigest()[:8]]))
    return found
