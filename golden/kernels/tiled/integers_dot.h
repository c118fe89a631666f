// Sums of products of 16-bit integers: a vector holds a 32-bit sum of each of LANES kernels, and a step adds two
// products to each sum, those of two neighbouring features and the kernels' two weights.
//
// A step is VPDPWSSD where the processor has it, else VPMADDWD and an addition. Unlike products of bytes, these have no
// case in which they saturate or wrap as long as the whole sum fits 32 bits.

#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512BW__)
#include <immintrin.h>

using Vector = __m512i;
constexpr int LANES = 16, MOST_VECTORS = 4, TILE = 24;
inline Vector zero() { return _mm512_setzero_si512(); }
inline Vector repeat(int32_t pair) { return _mm512_set1_epi32(pair); }
inline Vector load(const void* from) { return _mm512_loadu_si512(from); }
inline void store(void* to, Vector v) { _mm512_storeu_si512(to, v); }
#ifdef __AVX512VNNI__
inline Vector step(Vector sum, Vector x, Vector w) { return _mm512_dpwssd_epi32(sum, x, w); }
#else
inline Vector step(Vector sum, Vector x, Vector w) { return _mm512_add_epi32(sum, _mm512_madd_epi16(x, w)); }
#endif

#elif defined(__AVX2__)
#include <immintrin.h>

using Vector = __m256i;
constexpr int LANES = 8, MOST_VECTORS = 2, TILE = 8;
inline Vector zero() { return _mm256_setzero_si256(); }
inline Vector repeat(int32_t pair) { return _mm256_set1_epi32(pair); }
inline Vector load(const void* from) { return _mm256_loadu_si256(static_cast<const Vector*>(from)); }
inline void store(void* to, Vector v) { _mm256_storeu_si256(static_cast<Vector*>(to), v); }
inline Vector step(Vector sum, Vector x, Vector w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w)); }

#else

constexpr int LANES = 4, MOST_VECTORS = 2, TILE = 4;
struct Vector {
    int32_t lanes[LANES];
};
inline Vector zero() { return {}; }
inline Vector repeat(int32_t pair) { return {pair, pair, pair, pair}; }
inline Vector load(const void* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
inline void store(void* to, Vector v) { std::memcpy(to, &v, sizeof v); }
inline Vector step(Vector sum, Vector x, Vector w) {
    int16_t features[2 * LANES], weights[2 * LANES];
    std::memcpy(features, &x, sizeof x);
    std::memcpy(weights, &w, sizeof w);
    for (int lane = 0; lane < LANES; lane++)
        sum.lanes[lane] += features[2 * lane] * weights[2 * lane] + features[2 * lane + 1] * weights[2 * lane + 1];
    return sum;
}

#endif
