// XOR and popcount of one 64-bit word at a time, on any processor.

#pragma once

#include "cpu.h"

struct Kernel {
    using Unit = uint64_t;
    static constexpr int PER_WORD = 1;
    static constexpr int POSITIONS = 1, BLOCKS = 1;

    static void units(uint64_t word, Unit* to) { *to = word; }

    template <int P, int B>
    static void mismatches(const Unit* const* x, const Taps& taps, const Unit* weights, int32_t* counts) {
        static_assert(P == 1 && B == 1, "the scalar kernel makes one position of one block");
        constexpr int ABREAST = 8;  // kernels whose counts are in registers
        for (int o = 0; o < BLOCK; o += ABREAST) {
            int32_t count[ABREAST] = {};
            const Unit* w = weights + o;
            for (int64_t t = 0; t < taps.count; t++) {
                const Unit* from = x[0] + taps.offsets[t];
                for (int64_t u = 0; u < taps.units; u++, w += BLOCK)
                    for (int i = 0; i < ABREAST; i++) count[i] += __builtin_popcountll(from[u] ^ w[i]);
            }
            for (int i = 0; i < ABREAST; i++) counts[o + i] = count[i];
        }
    }

    static uint64_t at_most(const int32_t* counts, const int32_t* limits) {
        uint64_t bits = 0;
        for (int o = 0; o < BLOCK; o++) bits |= uint64_t(counts[o] <= limits[o]) << o;
        return bits;
    }
};
