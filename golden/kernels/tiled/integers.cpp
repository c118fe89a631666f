// Layers of integer networks on a CPU: 16-bit features, 32-bit sums. golden/kernels/tiled/integers.py says what fits.
//
// Maps are [N][height][width][channels], as golden has them, of int16_t or int32_t; names that end in `_bytes` say of
// which. The rows of all outputs, image after image, are shared out to threads.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "integers_dot.h"
#include "threads.h"

// As golden/kernels/tiled/integers.py fills it: windows over maps, in the words of golden/window.py.
struct Windows {
    int64_t images, height, width, channels, rows, columns;
    int64_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left, threads;
};

// Results that are made value by value, and what they are clipped to. Value k has the constants of number k % period.
struct Values {
    int16_t* y;
    int64_t count, period, low, high, threads;
};

namespace {

constexpr int64_t VALUE = 16;  // products that take as long as one of these values

// Calls the function with a value of the type that has so many bytes.
template <class Function> void typed(int64_t bytes, const Function& function) {
    bytes == 2 ? function(int16_t{}) : function(int32_t{});
}

// Convolution by groups. Weights are [groups][vectors][steps][LANES][2], 0 where there is no kernel or no value: of a
// run of features that lie one behind the other, a step takes two.
template <class To> class Dots {
  public:
    Dots(const Windows& windows, const int16_t* x, const int16_t* weights, To* sums, int64_t outputs, int64_t groups)
        : windows(windows), x(x), weights(weights), sums(sums), outputs(outputs), groups(groups) {
        band_width = (windows.columns - 1) * windows.stride_x + (windows.kernel_x - 1) * windows.dilation_x + 1;
        const int64_t row = windows.dilation_y * band_width * windows.channels;
        const bool whole = windows.dilation_x == 1 && groups == 1;  // a row of taps is one run
        run_length = whole ? windows.kernel_x * windows.channels : windows.channels / groups;
        for (int64_t y = 0; y < windows.kernel_y; y++)
            for (int64_t tap = 0; tap < (whole ? 1 : windows.kernel_x); tap++)
                runs.push_back(y * row + tap * windows.dilation_x * windows.channels);
        run_steps = (run_length + 1) / 2;
        steps = run_steps * int64_t(runs.size());
    }

    // Output rows first .. last - 1, counted over all images.
    void operator()(int64_t first, int64_t last) {
        band.clear();
        positions.clear();
        while (first < last) {
            const int64_t image = first / windows.rows, row = first % windows.rows;
            const int64_t count = std::min(last - first, windows.rows - row);
            add_rows(image, row, count);
            first += count;
        }
        band.push_back(0);  // the last run may have an odd number of features
        for (int64_t group = 0; group < groups; group++) {
            const int64_t kernels = outputs / groups, vectors = (kernels + LANES - 1) / LANES;
            for (int64_t vector = 0; vector < vectors;) {
                const int64_t left = vectors - vector;
                if (MOST_VECTORS >= 4 && left >= 4)
                    vector += add_vectors<std::min(4, MOST_VECTORS)>(group, vector, vectors);
                else if (left >= 2)
                    vector += add_vectors<2>(group, vector, vectors);
                else
                    vector += add_vectors<1>(group, vector, vectors);
            }
        }
    }

  private:
    struct Position {
        int64_t window, place;  // where it begins in the band; its number among all outputs
    };
    const Windows& windows;
    const int16_t* const x;
    const int16_t* const weights;
    To* const sums;
    const int64_t outputs, groups;
    int64_t band_width, run_length, run_steps, steps;
    std::vector<int64_t> runs;  // where they begin in a window
    std::vector<int16_t> band;  // the input's rows with the padding around them
    std::vector<Position> positions;

    // Appends the input of some output rows of an image to the band.
    void add_rows(int64_t image, int64_t row, int64_t count) {
        const int64_t channels = windows.channels, begin = int64_t(band.size());
        const int64_t height = (count - 1) * windows.stride_y + (windows.kernel_y - 1) * windows.dilation_y + 1;
        const int64_t inside = std::min(windows.width, band_width - windows.left);
        band.resize(size_t(begin + height * band_width * channels));  // zeros
        for (int64_t k = 0; k < height; k++) {
            const int64_t y = row * windows.stride_y - windows.top + k;
            if (y < 0 || y >= windows.height || inside <= 0) continue;
            const int16_t* from = x + (image * windows.height + y) * windows.width * channels;
            std::copy(from, from + inside * channels, band.data() + begin + (k * band_width + windows.left) * channels);
        }
        for (int64_t y = 0; y < count; y++)
            for (int64_t column = 0; column < windows.columns; column++)
                positions.push_back(
                    {begin + (y * windows.stride_y * band_width + column * windows.stride_x) * channels,
                     (image * windows.rows + row + y) * windows.columns + column});
    }

    template <int V> int64_t add_vectors(int64_t group, int64_t vector, int64_t vectors) const {
        constexpr int P = std::min(12, TILE / V);
        const int16_t* w = weights + (group * vectors + vector) * steps * LANES * 2;
        size_t p = 0;
        for (; p + P <= positions.size(); p += P) tile<P, V>(p, group, vector, w);
        for (; p < positions.size(); p++) tile<1, V>(p, group, vector, w);
        return V;
    }

    template <int P, int V> void tile(size_t first, int64_t group, int64_t vector, const int16_t* w) const {
        const int64_t kernels = outputs / groups, stride = steps * LANES * 2;
        Vector sum[P][V];
        for (int p = 0; p < P; p++)
            for (int v = 0; v < V; v++) sum[p][v] = zero();
        const int16_t* from[P];
        for (int p = 0; p < P; p++)
            from[p] = band.data() + positions[first + p].window + group * (windows.channels / groups);
        for (const int64_t run : runs)
            for (int64_t k = 0; k < run_steps; k++, w += LANES * 2) {
                Vector kernel[V];
                for (int v = 0; v < V; v++) kernel[v] = load(w + v * stride);
                for (int p = 0; p < P; p++) {
                    int32_t pair;
                    std::memcpy(&pair, from[p] + run + 2 * k, sizeof pair);
                    const Vector features = repeat(pair);
                    for (int v = 0; v < V; v++) sum[p][v] = step(sum[p][v], features, kernel[v]);
                }
            }
        for (int p = 0; p < P; p++)
            for (int v = 0; v < V; v++) {
                const int64_t kernel = (vector + v) * LANES;
                To* to = sums + positions[first + p].place * outputs + group * kernels + kernel;
                int32_t lanes[LANES];
                store(lanes, sum[p][v]);
                if (kernel + LANES <= kernels)
                    for (int lane = 0; lane < LANES; lane++) to[lane] = To(lanes[lane]);
                else
                    for (int64_t lane = 0; lane < kernels - kernel; lane++) to[lane] = To(lanes[lane]);
            }
    }
};

// How the values of a window become one; `Sum` multiplies them by weights.
struct Largest {
    static constexpr int32_t FIRST = std::numeric_limits<int32_t>::min();
    template <class T> static T add(T result, T x, T) { return x > result ? x : result; }
};
struct Smallest {
    static constexpr int32_t FIRST = std::numeric_limits<int32_t>::max();
    template <class T> static T add(T result, T x, T) { return x < result ? x : result; }
};
struct Sum {
    static constexpr int32_t FIRST = 0;
    template <class T> static T add(T result, T x, T w) { return result + x * w; }
};

// N values, as 32-bit integers.
template <int N> struct Few {
    typedef int32_t Vector __attribute__((vector_size(4 * N)));

    template <class T> static Vector load(const T* from) {
        typedef T Given __attribute__((vector_size(sizeof(T) * N)));
        Given given;
        std::memcpy(&given, from, sizeof given);
        return __builtin_convertvector(given, Vector);
    }

    template <class T> static void store(T* to, Vector values) {
        typedef T Wanted __attribute__((vector_size(sizeof(T) * N)));
        const Wanted wanted = __builtin_convertvector(values, Wanted);
        std::memcpy(to, &wanted, sizeof wanted);
    }
};

// The taps of a window that lie on the map, in one direction: first .. last - 1, and where the first one lies.
struct Valid {
    int64_t first, last, place;
};

std::vector<Valid> valid_taps(int64_t outputs, int64_t stride, int64_t kernel, int64_t dilation, int64_t before,
                              int64_t size) {
    std::vector<Valid> taps;
    for (int64_t output = 0; output < outputs; output++) {
        const int64_t begin = output * stride - before;
        int64_t first = 0, last = kernel;
        while (begin + first * dilation < 0) first++;
        while (begin + (last - 1) * dilation >= size) last--;
        taps.push_back({first, last, begin + first * dilation});
    }
    return taps;
}

// Pools, and depthwise convolutions: what becomes of a window's valid taps, channel by channel.
template <class Kind, class From, class To> class ByChannel {
  public:
    // Weights are [taps][channels], or null: all 1. With `mean` the sum is divided by the number of valid taps and
    // rounded, halves away from zero.
    ByChannel(const Windows& w, const From* x, const int16_t* weights, To* y, bool mean)
        : windows(w), x(x), weights(weights), y(y), mean(mean),
          rows(valid_taps(w.rows, w.stride_y, w.kernel_y, w.dilation_y, w.top, w.height)),
          columns(valid_taps(w.columns, w.stride_x, w.kernel_x, w.dilation_x, w.left, w.width)) {}

    void operator()(int64_t first, int64_t last) const {
        if (windows.channels >= LANES)
            add_rows<LANES>(first, last);
        else if (windows.channels >= LANES / 2)
            add_rows<LANES / 2>(first, last);
        else
            add_rows<1>(first, last);
    }

  private:
    const Windows& windows;
    const From* const x;
    const int16_t* const weights;
    To* const y;
    const bool mean;
    const std::vector<Valid> rows, columns;

    // N channels at a time. The last N may have been computed before: they become the same again.
    template <int N> void add_rows(int64_t first, int64_t last) const {
        using Vector = typename Few<N>::Vector;
        const int64_t channels = windows.channels;
        for (int64_t row = first; row < last; row++)
            for (int64_t column = 0; column < windows.columns; column++) {
                const Valid &over = columns[column], &down = rows[row % windows.rows];
                const int64_t line = row / windows.rows * windows.height + down.place;
                const From* corner = x + (line * windows.width + over.place) * channels;
                To* to = y + (row * windows.columns + column) * channels;
                for (int64_t block = 0; block < channels; block += N) {
                    const int64_t channel = std::min(block, channels - N);
                    Vector result = Vector{} + Kind::FIRST;
                    for (int64_t ky = down.first; ky < down.last; ky++) {
                        const From* from = corner + (ky - down.first) * windows.dilation_y * windows.width * channels;
                        const int64_t tap = ky * windows.kernel_x + over.first;
                        const int16_t* weight = weights ? weights + tap * channels + channel : nullptr;
                        for (int64_t kx = over.first; kx < over.last; kx++) {
                            const Vector value = Few<N>::load(from + channel);
                            result = Kind::add(result, value, weight ? Few<N>::load(weight) : Vector{} + 1);
                            from += windows.dilation_x * channels;
                            if (weight) weight += channels;
                        }
                    }
                    const int64_t count = (down.last - down.first) * (over.last - over.first);
                    if (mean)
                        for (int k = 0; k < N; k++) result[k] = average(result[k], count);
                    Few<N>::store(to + channel, result);
                }
            }
    }

    static int32_t average(int32_t sum, int64_t count) {
        const int64_t quotient = (2 * std::abs(int64_t(sum)) + count) / (2 * count);
        return int32_t(sum < 0 ? -quotient : quotient);
    }
};

template <class Kind, class From, class To>
void by_channel(const Windows& windows, const From* x, const int16_t* weights, To* y, bool mean) {
    share_out(windows.images * windows.rows, windows.columns, windows.channels * windows.kernel_y * windows.kernel_x,
              windows.threads, [&] { return ByChannel<Kind, From, To>(windows, x, weights, y, mean); });
}

// p / 2^shift to the nearest integer, halves away from zero; `half` is 2^shift / 2 and `some` whether it is above 0.
inline int64_t rounded(int64_t p, int64_t shift, int64_t half, int64_t some) {
    return (p + half - (some & (p >> 63))) >> shift;
}

inline int16_t clipped(int64_t value, int64_t low, int64_t high) {
    return int16_t(value < low ? low : value > high ? high : value);
}

// Calls function(k, c) for each value k.
template <class Function> void each(const Values& job, const Function& function) {
    share_out((job.count + job.period - 1) / job.period, job.period, VALUE, job.threads, [&] {
        return [&](int64_t first, int64_t last) {
            for (int64_t begin = first * job.period; begin < std::min(last * job.period, job.count); begin += job.period)
                for (int64_t c = 0, end = std::min(job.period, job.count - begin); c < end; c++) function(begin + c, c);
        };
    });
}

enum Rounding { ONCE, EVEN, TWICE };
constexpr int64_t FIRST_SHIFT = 31;  // that of the first of two roundings

// The constants of a requantisation, for each number: p + half = x * factor + offset.
template <Rounding ROUNDING, class Factor> struct Scales {
    std::vector<Factor> factor;
    std::vector<int64_t> offset, shift, half;
    std::vector<int64_t> away;  // below it a sum with its half is less than 0, and has halves away from it
    std::vector<int64_t> rest;  // bits of a sum with its half that are all 0 for an exact half

    Scales(int64_t period, const int64_t* bias, const int64_t* multiplier, const int64_t* shifts, int64_t fraction) {
        for (int64_t c = 0; c < period; c++) {
            const int64_t s = shifts[c] - (ROUNDING == TWICE ? FIRST_SHIFT : 0), h = (int64_t(1) << s) >> 1;
            factor.push_back(Factor(multiplier[c] << fraction));
            offset.push_back(bias[c] * multiplier[c] + (ROUNDING == TWICE ? int64_t(1) << (FIRST_SHIFT - 1) : h));
            shift.push_back(s);
            half.push_back(h);
            away.push_back(h ? h : std::numeric_limits<int64_t>::min());
            rest.push_back(h ? (int64_t(1) << s) - 1 : -1);
        }
    }
};

template <Rounding ROUNDING, class Factor, class From>
void requantise(const Values& job, const From* x, const Scales<ROUNDING, Factor>& scales) {
    const Factor* const factor = scales.factor.data();
    const int64_t *const offset = scales.offset.data(), *const shift = scales.shift.data();
    const int64_t *const half = scales.half.data(), *const away = scales.away.data(), *const rest = scales.rest.data();
    int16_t* const y = job.y;
    const int64_t low = job.low, high = job.high;
    each(job, [=](int64_t k, int64_t c) {
        int64_t p = int64_t(x[k]) * int64_t(factor[c]) + offset[c];
        if (ROUNDING == TWICE) p = (p >> FIRST_SHIFT) + half[c];
        if (ROUNDING == EVEN) {
            const int64_t up = p >> shift[c];
            p = up - ((p & rest[c]) == 0 ? up & 1 : 0);
        } else {
            p = (p - (p < away[c])) >> shift[c];
        }
        y[k] = clipped(p, low, high);
    });
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int64_t bitloom_lanes() { return LANES; }

EXPORTED void bitloom_dots(const Windows* windows, const int16_t* x, const int16_t* weights, int64_t outputs,
                           int64_t groups, void* sums, int64_t bytes) {
    const int64_t products = windows->kernel_y * windows->kernel_x * windows->channels / groups * outputs;
    typed(bytes, [&](auto to) {
        using To = decltype(to);
        share_out(windows->images * windows->rows, windows->columns, products, windows->threads,
                  [&] { return Dots<To>(*windows, x, weights, static_cast<To*>(sums), outputs, groups); });
    });
}

// `kind` is 0 for the largest value, 1 for the smallest one, 2 for the sum, 3 for the average.
EXPORTED void bitloom_by_channel(const Windows* windows, int64_t kind, const void* x, int64_t x_bytes,
                                 const int16_t* weights, void* y, int64_t y_bytes) {
    typed(x_bytes, [&](auto from) {
        const auto* source = static_cast<const decltype(from)*>(x);
        if (kind < 2) {
            auto* target = static_cast<decltype(from)*>(y);
            kind ? by_channel<Smallest>(*windows, source, weights, target, false)
                 : by_channel<Largest>(*windows, source, weights, target, false);
        } else {
            typed(y_bytes, [&](auto to) {
                by_channel<Sum>(*windows, source, weights, static_cast<decltype(to)*>(y), kind == 3);
            });
        }
    });
}

// `wide` says whether a multiplier times 2^fraction has more than 32 bits.
EXPORTED void bitloom_requantise(const Values* job, const void* x, int64_t bytes, const int64_t* bias,
                                 const int64_t* multiplier, const int64_t* shift, int64_t fraction, int64_t rounding,
                                 int64_t wide) {
    const auto rounded_by = [&](auto by, auto factor) {
        const Scales<decltype(by)::value, decltype(factor)> scales(job->period, bias, multiplier, shift, fraction);
        typed(bytes, [&](auto from) { requantise(*job, static_cast<const decltype(from)*>(x), scales); });
    };
    const auto run = [&](auto by) { wide ? rounded_by(by, int64_t{}) : rounded_by(by, int32_t{}); };
    if (rounding == ONCE)
        run(std::integral_constant<Rounding, ONCE>{});
    else if (rounding == EVEN)
        run(std::integral_constant<Rounding, EVEN>{});
    else
        run(std::integral_constant<Rounding, TWICE>{});
}

// y = (x_1 * multiplier_1 + x_2 * multiplier_2 + bias) / 2^shift, rounded and clipped.
EXPORTED void bitloom_add(const Values* job, const int16_t* first, const int16_t* second, int64_t first_multiplier,
                          int64_t second_multiplier, int64_t bias, int64_t shift) {
    const int64_t half = (int64_t(1) << shift) >> 1, some = shift > 0;
    each(*job, [=](int64_t k, int64_t) {
        const int64_t t = first[k] * first_multiplier + second[k] * second_multiplier + bias;
        job->y[k] = clipped(rounded(t, shift, half, some), job->low, job->high);
    });
}

// y = twice the number of levels with x * direction >= limit, less the number of levels; limits are [levels][period].
EXPORTED void bitloom_threshold(const Values* job, const void* x, int64_t bytes, const int32_t* direction,
                                const int32_t* limits, int64_t levels) {
    typed(bytes, [&](auto from) {
        const auto* source = static_cast<const decltype(from)*>(x);
        each(*job, [=](int64_t k, int64_t c) {
            const int32_t turned = source[k] * direction[c];
            int32_t reached = 0;
            for (int64_t level = 0; level < levels; level++) reached += turned >= limits[level * job->period + c];
            job->y[k] = int16_t(2 * reached - levels);
        });
    });
}
