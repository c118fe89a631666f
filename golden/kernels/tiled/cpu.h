// What the kernels of the CPU path and the loops around them (cpu.cpp) agree on.
//
// Output channels come in blocks of BLOCK, the bits of an output word. The input channels of a position come in units:
// what a kernel takes at a time. A kernel is a struct with
//
//     Unit                 type of a unit
//     POSITIONS, BLOCKS    of the tile that it is fastest for
//     PER_WORD             units of 64 channels
//     units(word, to)      writes them, the lowest channels first
//     mismatches<P, B>(x, taps, weights, counts)
//                          counts[p][b][o] = mismatches of the window at x[p] and kernel o of block b
//     at_most(counts, limits)
//                          a word: bit o is counts[o] <= limits[o], o < BLOCK
//
// Weights are [block][tap][unit][BLOCK], in the encoding of golden/kernels/tiled/cpu.py.

#pragma once

#include <cstdint>

constexpr int BLOCK = 64;

// Where a window's units lie: `units` of them from each of the `count` offsets on.
struct Taps {
    const int64_t* offsets;
    int64_t count;
    int64_t units;

    int64_t block() const { return count * units * BLOCK; }  // units of a block's weights
};
