// XOR and VPOPCNTQ: a vector holds a 64-bit word of each of 8 kernels, so counts need no sum across a vector.
//
// Three instructions count 512 products. 4 positions share each load of weights, 4 vectors each load of a feature.

#pragma once

#include <immintrin.h>

#include "cpu.h"

#ifdef __AVX512VPOPCNTDQ__
inline __m512i popcount(__m512i v) { return _mm512_popcnt_epi64(v); }
#else  // the same function where the instruction is missing: so that the kernel can be tested there
inline __m512i popcount(__m512i v) {
    const __m512i low = _mm512_set1_epi8(15);
    const __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i even = _mm512_shuffle_epi8(table, _mm512_and_si512(v, low));
    const __m512i odd = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi64(v, 4), low));
    return _mm512_sad_epu8(_mm512_add_epi8(even, odd), _mm512_setzero_si512());
}
#endif

struct Kernel {
    using Unit = uint64_t;
    static constexpr int PER_WORD = 1;
    static constexpr int POSITIONS = 4, BLOCKS = 1;

    static void units(uint64_t word, Unit* to) { *to = word; }

    template <int P, int B>
    static void mismatches(const Unit* const* x, const Taps& taps, const Unit* weights, int32_t* counts) {
        static_assert(B == 1, "this kernel makes one block");
        constexpr int LANES = 8, VECTORS = 4;
        for (int o = 0; o < BLOCK; o += VECTORS * LANES) {
            __m512i count[P][VECTORS];
            for (int p = 0; p < P; p++)
                for (int v = 0; v < VECTORS; v++) count[p][v] = _mm512_setzero_si512();
            const Unit* w = weights + o;
            for (int64_t t = 0; t < taps.count; t++) {
                for (int64_t u = taps.offsets[t]; u < taps.offsets[t] + taps.units; u++, w += BLOCK) {
                    __m512i kernels[VECTORS];
                    for (int v = 0; v < VECTORS; v++) kernels[v] = _mm512_loadu_si512(w + v * LANES);
                    for (int p = 0; p < P; p++) {
                        const __m512i feature = _mm512_set1_epi64(int64_t(x[p][u]));
                        for (int v = 0; v < VECTORS; v++) {
                            const __m512i ones = popcount(_mm512_xor_si512(feature, kernels[v]));
                            count[p][v] = _mm512_add_epi64(count[p][v], ones);
                        }
                    }
                }
            }
            for (int p = 0; p < P; p++)
                for (int v = 0; v < VECTORS; v++)
                    _mm256_storeu_si256(reinterpret_cast<__m256i*>(counts + p * BLOCK + o + v * LANES),
                                        _mm512_cvtepi64_epi32(count[p][v]));
        }
    }

    static uint64_t at_most(const int32_t* counts, const int32_t* limits) {
        uint64_t bits = 0;
        for (int o = 0; o < BLOCK; o += 16) {
            const __m512i count = _mm512_loadu_si512(counts + o), limit = _mm512_loadu_si512(limits + o);
            bits |= uint64_t(_mm512_cmple_epi32_mask(count, limit)) << o;
        }
        return bits;
    }
};
