// Binary convolution of packed words on a CPU: the loops around the kernel that the compiler's flags choose.
//
// The rows of all outputs, image after image, are shared out to threads in tasks. A task copies the input rows that it
// needs, with the padding around them, into a band of units; there every window has the same offsets, and borders cost
// the kernel nothing. What padding adds to the mismatches of a window is known before, and stands in the border's row
// of `bias` and `limit`.

#include <algorithm>
#include <vector>

#include "threads.h"

#if defined(BITLOOM_POPCOUNT)
#include "cpu_popcount.h"
#elif defined(BITLOOM_LOOKUP)
#include "cpu_lookup.h"
#else
#include "cpu_scalar.h"
#endif

// As golden/kernels/tiled/cpu.py fills it; sizes in the words of golden/kernels/tiled/conv.py. `padded` is out_groups * BLOCK.
struct Job {
    const uint64_t* input;        // [N][groups][height][width]
    const uint64_t* filler;       // [groups]: a position outside the map
    const Kernel::Unit* weights;  // [out_groups][taps][units][BLOCK]
    const int32_t* border;        // [rows][columns]: which row of bias or limit a window has
    const int32_t* bias;          // [borders][padded]: dot = bias - 2 mismatches
    const int32_t* limit;         // [borders][padded]: bit = mismatches <= limit
    int32_t* dots;                // [N][rows][columns][out_channels], or null:
    uint64_t* bits;               // [N][out_groups][rows][columns]
    int64_t images, groups, height, width, units, out_channels, out_groups;
    int64_t kernel_y, kernel_x, stride_y, stride_x, top, left, rows, columns, threads;
};

namespace {

using Unit = Kernel::Unit;
constexpr int64_t SLACK = Kernel::PER_WORD;  // a position's last word may have more units than are used

struct Position {
    int64_t image, row, column, window;  // window: where it begins in the band
};

class Task {
  public:
    explicit Task(const Job& j) : job(j), band_width((j.columns - 1) * j.stride_x + j.kernel_x) {
        for (int64_t y = 0; y < job.kernel_y; y++)
            for (int64_t x = 0; x < job.kernel_x; x++) offsets.push_back((y * band_width + x) * job.units);
        taps = {offsets.data(), int64_t(offsets.size()), job.units};
    }

    // Output rows first .. last - 1, counted over all images.
    void operator()(int64_t first, int64_t last) {
        positions.clear();
        band.clear();
        while (first < last) {
            const int64_t image = first / job.rows, row = first % job.rows;
            const int64_t count = std::min(last - first, job.rows - row);
            add_rows(image, row, count);
            first += count;
        }
        for (int64_t block = 0; block < job.out_groups;) {
            if (block + Kernel::BLOCKS <= job.out_groups) {
                add_blocks<Kernel::BLOCKS>(block);
                block += Kernel::BLOCKS;
            } else {
                add_blocks<1>(block++);
            }
        }
    }

  private:
    const Job& job;
    const int64_t band_width;
    std::vector<int64_t> offsets;
    Taps taps;
    std::vector<Unit> band;
    std::vector<Position> positions;

    // Appends the input of some output rows of an image to the band.
    void add_rows(int64_t image, int64_t row, int64_t count) {
        const int64_t begin = int64_t(band.size());
        const int64_t height = (count - 1) * job.stride_y + job.kernel_y;
        band.resize(size_t(begin + height * band_width * job.units + SLACK));
        Unit* to = band.data() + begin;
        for (int64_t y = row * job.stride_y - job.top, end = y + height; y < end; y++)
            for (int64_t x = -job.left; x < band_width - job.left; x++, to += job.units) add_position(image, y, x, to);
        for (int64_t y = 0; y < count; y++)
            for (int64_t x = 0; x < job.columns; x++)
                positions.push_back(
                    {image, row + y, x, begin + (y * job.stride_y * band_width + x * job.stride_x) * job.units});
    }

    void add_position(int64_t image, int64_t y, int64_t x, Unit* to) const {
        const bool inside = y >= 0 && y < job.height && x >= 0 && x < job.width;
        const int64_t plane = job.height * job.width;
        const uint64_t* from = inside ? job.input + image * job.groups * plane + y * job.width + x : job.filler;
        const int64_t step = inside ? plane : 1;
        for (int64_t group = 0; group < job.groups; group++, to += Kernel::PER_WORD)
            Kernel::units(from[group * step], to);
    }

    template <int B> void add_blocks(int64_t block) const {
        size_t p = 0;
        for (; p + Kernel::POSITIONS <= positions.size(); p += Kernel::POSITIONS) tile<Kernel::POSITIONS, B>(p, block);
        for (; p < positions.size(); p++) tile<1, B>(p, block);
    }

    template <int P, int B> void tile(size_t first, int64_t block) const {
        alignas(64) int32_t counts[P][B][BLOCK];
        const Unit* x[P];
        for (int p = 0; p < P; p++) x[p] = band.data() + positions[first + p].window;
        Kernel::template mismatches<P, B>(x, taps, job.weights + block * taps.block(), &counts[0][0][0]);
        for (int p = 0; p < P; p++)
            for (int b = 0; b < B; b++) put(positions[first + p], block + b, counts[p][b]);
    }

    void put(const Position& at, int64_t block, const int32_t* counts) const {
        const int64_t place = at.row * job.columns + at.column, plane = job.rows * job.columns;
        const int64_t row = (job.border[place] * job.out_groups + block) * BLOCK;
        if (job.dots) {
            int32_t* to = job.dots + (at.image * plane + place) * job.out_channels + block * BLOCK;
            const int64_t channels = std::min<int64_t>(BLOCK, job.out_channels - block * BLOCK);
            for (int64_t o = 0; o < channels; o++) to[o] = job.bias[row + o] - 2 * counts[o];
        } else {
            job.bits[(at.image * job.out_groups + block) * plane + place] = Kernel::at_most(counts, job.limit + row);
        }
    }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void bitloom_conv(const Job* job) {
    const int64_t rows = job->images * job->rows;
    const int64_t fan_in = job->kernel_y * job->kernel_x * job->units * (BLOCK / Kernel::PER_WORD);
    share_out(rows, job->columns, job->out_channels * fan_in, job->threads, [&] { return Task(*job); });
}
