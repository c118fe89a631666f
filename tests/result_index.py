"""Where each output value of a program lies in the words of its results, bit by bit."""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.program import Program


def result_index(program: Program) -> Array:
    """(outputs, k) int32: the result word of each raw value, k = 1; of other values the k result bits, low bit
    first."""
    places = list[list[int]]()
    for each in program.results:
        unit = program.stream_bits
        word_bits = each.lanes * each.lane_bits
        together = max(1, unit // word_bits)
        pieces = -(-word_bits // unit)
        for position in range(each.positions):
            for channel in each.places:
                bits = []
                for place in channel:
                    word, lane = divmod(int(place), each.lanes)
                    word += position * each.words
                    begin = word // together * pieces * unit + word % together * word_bits + lane * each.lane_bits
                    begin += 32 * each.first
                    bits += [begin // 32] if program.output_kind == "raw" else range(begin, begin + each.lane_bits)
                places.append(bits)
    return np.array(places, np.int32)
