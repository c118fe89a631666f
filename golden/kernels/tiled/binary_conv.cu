// Two-level tiled binary convolution. conv.py says what it computes, plan.py how it is cut up. NVRTC and nvcc compile
// this source for a GPU, g++ with tests/golden/kernels/tiled/fibers.h for a machine without one.
//
// A block of (a, bh, bw) threads makes the outputs of a channels, bh * ROWS rows and bw * COLUMNS columns. It copies
// what these need of the input, and the weights of its channels, into shared memory, stage_groups word groups at a
// time; each word is read once. With two buffers the next groups are copied while the block works on these. From there
// on it reads shared memory only, and a threshold. The decisions of a warp become output words of 32 bits, or halves of
// words, by votes.
//
//   binary_conv_popc : every thread has ROWS x COLUMNS neighbouring positions of one channel; XOR and popcount.
//   binary_conv_mma  : every warp has 16 positions of 32 channels at a time; the tensor cores' binary matrix product.
//
// KERNEL is the kernel's size where it is square and known at compile time, else 0.

struct Problem {
    int channels, groups, height, width;
    int out_channels, out_groups, out_height, out_width;
    int kernel_rows, kernel_columns, stride_rows, stride_columns, top, left;
    int pad, stage_groups, buffers;
};

enum Pad { PAD_MINUS, PAD_PLUS, PAD_EXACT };  // what taps outside the map count as

constexpr unsigned WARP = 0xffffffffu;  // all lanes

extern __shared__ unsigned long long shared_memory[];

__device__ inline int ones(unsigned word) { return __popc(word); }
__device__ inline int ones(unsigned long long word) { return __popcll(word); }
// Without a sign a division takes fewer instructions.
__device__ inline unsigned ceil_div(unsigned a, unsigned b) { return (a + b - 1) / b; }
__device__ inline int thread_index() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
__device__ inline int thread_count() { return blockDim.x * blockDim.y * blockDim.z; }

template <int KERNEL>
__device__ inline void fix_kernel(Problem& p) {
    if (KERNEL) p.kernel_rows = p.kernel_columns = KERNEL;  // the compiler then unrolls what depends on it
}

// ---- what a block makes, and what it needs for that

struct Tile {
    int image, channel, row, column;  // first output
    int top, left;                    // first input, may be outside the map
    int rows, columns;                // of input in shared memory
    int used_rows, used_columns;      // of these, as many as outputs inside the map need
};

__device__ inline Tile place(const Problem& p, int word_bits, int tile_rows, int tile_columns) {
    const unsigned across = ceil_div(p.out_width, tile_columns), down = ceil_div(p.out_height, tile_rows);
    const unsigned deep = ceil_div(p.out_groups * word_bits, blockDim.x);
    const unsigned block = blockIdx.x;  // column of tiles fastest, then row, channels, image
    Tile tile;
    tile.column = block % across * tile_columns;
    tile.row = block / across % down * tile_rows;
    tile.channel = block / across / down % deep * blockDim.x;
    tile.image = block / across / down / deep;
    tile.top = tile.row * p.stride_rows - p.top;
    tile.left = tile.column * p.stride_columns - p.left;
    tile.rows = (tile_rows - 1) * p.stride_rows + p.kernel_rows;
    tile.columns = (tile_columns - 1) * p.stride_columns + p.kernel_columns;
    tile.used_rows = (min(tile_rows, p.out_height - tile.row) - 1) * p.stride_rows + p.kernel_rows;
    tile.used_columns = (min(tile_columns, p.out_width - tile.column) - 1) * p.stride_columns + p.kernel_columns;
    return tile;
}

template <typename Word>
__device__ inline Word outside_word(const Problem& p, int group) {
    const int bits = 8 * sizeof(Word), used = min(bits, p.channels - group * bits);
    return p.pad == PAD_PLUS ? ~Word(0) >> (bits - used) : 0;
}

// Numbers row by row and group by group, of which a thread takes every ``step``-th: without a division for each one.
struct Walk {
    int group, row, column;              // of the number
    int groups_on, rows_on, columns_on;  // from a number to the next one

    __device__ Walk(unsigned rows, unsigned columns, unsigned first, unsigned step)
        : group(first / columns / rows), row(first / columns % rows), column(first % columns),
          groups_on(step / columns / rows), rows_on(step / columns % rows), columns_on(step % columns) {}

    __device__ void next(int rows, int columns) {
        column += columns_on, row += rows_on, group += groups_on;
        if (column >= columns) column -= columns, row++;
        if (row >= rows) row -= rows, group++;
    }
};

// A thread's part in its warp's products. Row r of a product is position r of 16; column c of product j of four is
// channel 8 j + c / 2 + 4 (c % 2), so that a vote on one element of the results has 4 channels side by side.
struct Part {
    int lane, quad, member;  // the PTX ISA's laneid, groupID, threadID_in_group
    int channel;             // first of the warp's 32, in the tile
    int warp, warps;         // of those with the same channels

    __device__ int first_position(int chunk) const { return 16 * (warp + chunk * warps); }
    __device__ int loaded_column(int j) const { return channel + 8 * j + quad; }
    __device__ int result_column(int j, int odd) const { return channel + 8 * j + 2 * member + odd; }
};

__device__ inline Part part_of_thread() {
    const int lane = threadIdx.x % 32;
    return {lane,
            lane / 4,
            lane % 4,
            int(threadIdx.x) - lane,
            int(threadIdx.y + blockDim.y * threadIdx.z),
            int(blockDim.y * blockDim.z)};
}

// The channel of a column of the products, of the tile's; and the column of a channel.
__device__ inline int channel_of(int column) { return (column & ~7) + ((column & 7) >> 1) + 4 * (column & 1); }
__device__ inline int column_of(int channel) { return (channel & ~7) + 2 * (channel & 3) + (channel >> 2 & 1); }

// Where the weights of a tap and a column lie. Rows are 32 bytes longer than a: four neighbouring taps of eight columns
// (four of words of 64 bits), as a warp (half of it) reads and writes them at a time, then are all in different banks.
template <typename Word>
__device__ inline int weight_at(int tap, int column) {
    return tap * (blockDim.x + 32 / int(sizeof(Word))) + column;
}

// Copies a word from global to shared memory, where it is after wait_for_copies.
template <typename Word>
__device__ inline void start_copy(Word* to, const Word* from) {
#ifdef FIBERS
    fibers::start_copy(to, __ldg(from));
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "n"(sizeof(Word)) : "memory");
#else
    *to = __ldg(from);
#endif
}

// Ends a group of copies.
__device__ inline void commit_copies() {
#ifdef FIBERS
    fibers::commit_copies();
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for this thread's copies but those of the last LATER groups.
template <int LATER>
__device__ inline void wait_for_copies() {
#ifdef FIBERS
    fibers::wait_for_copies(LATER);
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" :: "n"(LATER) : "memory");
#endif
}

// What of the input and of the weights a thread copies, of the first word groups that are staged.
struct Share {
    Walk word;     // of the input tile
    Walk weights;  // group: 4 taps; column: 8 channels
};

__device__ inline Share share_of_thread(const Tile& tile) {
    return {Walk(tile.rows, tile.columns, thread_index(), thread_count()),
            Walk(1, blockDim.x / 8, thread_index() / 32, thread_count() / 32)};
}

// Starts to copy word groups first ... first + groups - 1: features[groups][rows][columns], and kernels, by weight_at.
// A warp copies four taps of eight channels at a time.
template <typename Word>
__device__ inline void stage(const Problem& p, const Tile& tile, Share share, int first, int groups, const Word* input,
                             const Word* weight, Word* features, Word* kernels) {
    const int taps = p.kernel_rows * p.kernel_columns;
    Walk& at = share.word;
    for (int i = thread_index(); at.group < groups; i += thread_count(), at.next(tile.rows, tile.columns)) {
        const int y = tile.top + at.row, x = tile.left + at.column, group = first + at.group;
        if (at.row >= tile.used_rows || at.column >= tile.used_columns) continue;
        if (0 <= y && y < p.height && 0 <= x && x < p.width) {
            const long long from = (((long long)tile.image * p.groups + group) * p.height + y) * p.width + x;
            start_copy(features + i, input + from);
        } else {
            features[i] = outside_word<Word>(p, group);
        }
    }
    const int quad = threadIdx.x % 32 / 4, member = threadIdx.x % 4, blocks = blockDim.x / 8;
    for (Walk& part = share.weights; 4 * part.group < groups * taps; part.next(1, blocks)) {
        const int tap = 4 * part.group + member, column = 8 * part.column + quad, channel = channel_of(column);
        if (tap >= groups * taps) continue;
        if (tile.channel + channel < p.out_channels) {
            const long long from = ((long long)(tile.channel + channel) * p.groups + first) * taps + tap;
            start_copy(kernels + weight_at<Word>(tap, column), weight + from);
        } else {
            kernels[weight_at<Word>(tap, column)] = 0;
        }
    }
}

// Stages all word groups of a tile, p.stage_groups at a time, and calls work(first, groups, features, kernels) for
// these. With two buffers the next ones are on their way meanwhile.
template <typename Word, typename Work>
__device__ inline void for_staged(const Problem& p, const Tile& tile, const Word* input, const Word* weight,
                                  Word* buffers, Work work) {
    const int area = tile.rows * tile.columns, taps = p.kernel_rows * p.kernel_columns;
    const int words = p.stage_groups * (area + weight_at<Word>(taps, 0));  // of a buffer
    const int needed = tile.channel < p.out_channels ? p.groups : 0;
    const Share share = share_of_thread(tile);
    int staged = 0, full = 0, free = 0;  // word groups; the buffer that is worked on next, and the one to be filled
    for (int first = 0; first < needed; first += p.stage_groups) {
        while (staged < needed && staged < first + p.buffers * p.stage_groups) {
            Word* buffer = buffers + free * words;
            const int groups = min(p.stage_groups, p.groups - staged);
            stage(p, tile, share, staged, groups, input, weight, buffer, buffer + p.stage_groups * area);
            commit_copies();
            staged += p.stage_groups, free = p.buffers - 1 - free;
        }
        if (staged > first + p.stage_groups) wait_for_copies<1>();
        else wait_for_copies<0>();
        __syncthreads();
        const Word* features = buffers + full * words;
        work(first, min(p.stage_groups, p.groups - first), features, features + p.stage_groups * area);
        full = p.buffers - 1 - full;
        __syncthreads();
    }
}

// Words of all buffers.
template <typename Word>
__device__ inline int buffer_words(const Problem& p, const Tile& tile) {
    const int taps = p.kernel_rows * p.kernel_columns;
    return p.buffers * p.stage_groups * (tile.rows * tile.columns + weight_at<Word>(taps, 0));
}

// ---- which taps of a window count

struct Taps {
    int first_row, end_row, first_column, end_column;
    __device__ int count() const { return (end_row - first_row) * (end_column - first_column); }
};

// Of the window of an output position inside the map.
__device__ inline Taps counting_taps(const Problem& p, int row, int column) {
    const int y = row * p.stride_rows - p.top, x = column * p.stride_columns - p.left;
    if (p.pad != PAD_EXACT) return {0, p.kernel_rows, 0, p.kernel_columns};
    return {max(0, -y), min(p.kernel_rows, p.height - y), max(0, -x), min(p.kernel_columns, p.width - x)};
}

// Whether all taps of an output position's window count.
__device__ inline bool whole_window(const Problem& p, int row, int column) {
    const int y = row * p.stride_rows - p.top, x = column * p.stride_columns - p.left;
    return p.pad != PAD_EXACT ||
           (y >= 0 && y + p.kernel_rows <= p.height && x >= 0 && x + p.kernel_columns <= p.width);
}

// ---- results

// word: 32 channels from ``channel`` on, a multiple of 32.
template <typename Word>
__device__ inline void store_word(const Problem& p, int image, int channel, int row, int column, unsigned word,
                                  unsigned* bits) {
    const int word_bits = 8 * sizeof(Word), group = channel / word_bits;
    if (group >= p.out_groups || row >= p.out_height || column >= p.out_width) return;
    const long long at = (((long long)image * p.out_groups + group) * p.out_height + row) * p.out_width + column;
    bits[at * (word_bits / 32) + channel % word_bits / 32] = word;  // little endian, as every GPU
}

__device__ inline void store_dot(const Problem& p, int image, int channel, int row, int column, int dot, int* dots) {
    if (channel >= p.out_channels || row >= p.out_height || column >= p.out_width) return;
    dots[(((long long)image * p.out_height + row) * p.out_width + column) * p.out_channels + channel] = dot;
}

// ---- XOR and popcount

// Adds the mismatches of the staged groups. BORDER: taps outside the map are left out.
template <bool BORDER, typename Word, int ROWS, int COLUMNS>
__device__ inline void add_mismatches(const Problem& p, const Tile& tile, int groups, const Word* features,
                                      const Word* kernels, int (&sum)[ROWS][COLUMNS]) {
    const int row = threadIdx.y * ROWS * p.stride_rows, column = threadIdx.z * COLUMNS * p.stride_columns;
    for (int group = 0; group < groups; group++) {
        for (int ky = 0; ky < p.kernel_rows; ky++) {
            for (int kx = 0; kx < p.kernel_columns; kx++) {
                const int tap = (group * p.kernel_rows + ky) * p.kernel_columns + kx;
                const Word weight = kernels[weight_at<Word>(tap, column_of(threadIdx.x))];
                const Word* window = features + (group * tile.rows + row + ky) * tile.columns + column + kx;
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; j++) {
                        const int y = tile.top + row + i * p.stride_rows + ky;
                        const int x = tile.left + column + j * p.stride_columns + kx;
                        if (BORDER && !(0 <= y && y < p.height && 0 <= x && x < p.width)) continue;
                        sum[i][j] += ones(window[i * p.stride_rows * tile.columns + j * p.stride_columns] ^ weight);
                    }
                }
            }
        }
    }
}

// input, weight: words in layout N(C/B)HWB. Without dots, threshold (O) gives bits in the same layout; with dots, these
// are (N, H', W', O), and the other two are not used.
template <typename Word, int ROWS, int COLUMNS, int KERNEL>
__global__ void binary_conv_popc(const Word* input, const Word* weight, const int* threshold, unsigned* bits, int* dots,
                                 Problem p) {
    fix_kernel<KERNEL>(p);
    const Tile tile = place(p, 8 * sizeof(Word), blockDim.y * ROWS, blockDim.z * COLUMNS);
    Word* buffers = reinterpret_cast<Word*>(shared_memory);
    const int channel = tile.channel + threadIdx.x, row = tile.row + threadIdx.y * ROWS,
              column = tile.column + threadIdx.z * COLUMNS;
    const bool working = channel < p.out_channels && row < p.out_height && column < p.out_width;
    const bool border = !whole_window(p, row, column) || !whole_window(p, row + ROWS - 1, column + COLUMNS - 1);

    int sum[ROWS][COLUMNS] = {};
    for_staged(p, tile, input, weight, buffers, [&](int, int groups, const Word* features, const Word* kernels) {
        if (working && border) add_mismatches<true>(p, tile, groups, features, kernels, sum);
        if (working && !border) add_mismatches<false>(p, tile, groups, features, kernels, sum);
    });

    const int limit = threshold && channel < p.out_channels ? __ldg(threshold + channel) : 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int dot = p.channels * counting_taps(p, row + i, column + j).count() - 2 * sum[i][j];
            if (dots) {
                store_dot(p, tile.image, channel, row + i, column + j, dot, dots);
                continue;
            }
            const unsigned word = __ballot_sync(WARP, channel < p.out_channels && dot >= limit);
            if (threadIdx.x % 32 == 0) store_word<Word>(p, tile.image, channel, row + i, column + j, word, bits);
        }
    }
}

// ---- tensor cores

// sum[16][8] += set bits of a[16][256] XOR or AND b[256][8], spread over a warp as PTX says for mma.m16n8k256 of .b1.
template <bool XOR>
__device__ inline void multiply(int (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#ifdef FIBERS
    fibers::multiply(XOR, sum, a, b);
#else
#define BINARY_MMA(OPERATION)                                                                   \
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32." OPERATION                  \
                 ".popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                  \
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    if constexpr (XOR) BINARY_MMA("xor");
    else BINARY_MMA("and");
#undef BINARY_MMA
#endif
}

// Words of a row of 256 bits that a lane holds: of those from k on, k and, where words have 32 bits, k + 4. Which ones
// they are doesn't matter, if both operands hold the same.
template <typename Word>
constexpr int LANE_WORDS = 8 / sizeof(Word);

// Their two pieces of 32 bits.
__device__ inline void pieces(const unsigned (&word)[2], unsigned& low, unsigned& high) {
    low = word[0], high = word[1];
}

__device__ inline void pieces(const unsigned long long (&word)[1], unsigned& low, unsigned& high) {
    low = unsigned(word[0]), high = unsigned(word[0] >> 32);
}

// A position of the tile that a warp works on, by its number, row by row.
struct Position {
    int row, column;
    bool inside;  // the tile and the map
};

__device__ inline Position position(const Problem& p, const Tile& tile, int number, int tile_rows, int tile_columns) {
    const int row = unsigned(number) / unsigned(tile_columns), column = number - row * tile_columns;
    const bool inside = row < tile_rows && tile.row + row < p.out_height && tile.column + column < p.out_width;
    return {row, column, inside};
}

// Whether all taps of its window count. A position outside has no window that would lack any.
__device__ inline bool has_whole_window(const Problem& p, const Tile& tile, const Position& at) {
    return !at.inside || whole_window(p, tile.row + at.row, tile.column + at.column);
}

// Where its window begins in a group of the staged input.
__device__ inline int first_input(const Problem& p, const Tile& tile, const Position& at) {
    return at.inside ? at.row * p.stride_rows * tile.columns + at.column * p.stride_columns : 0;
}

// weight_ones[kernel_rows + 1][kernel_columns + 1][a]: ones in the weights of the taps above and left of a tap, column by
// column, so that a rectangle of taps has the ones of four corners. Until all groups are counted, a tap's own ones stand
// at its lower right corner.
__device__ inline int corner(const Problem& p, int row, int column) {
    return (row * (p.kernel_columns + 1) + column) * blockDim.x;
}

// Adds the ones of the staged groups in each tap's weights, of the taps of this warp: ``walk``.
template <typename Word>
__device__ inline void count_weight_ones(const Problem& p, const Part& part, Walk walk, bool first, int groups,
                                         const Word* kernels, int* weight_ones) {
    const int column = threadIdx.x, taps = p.kernel_rows * p.kernel_columns;
    for (int tap = part.warp; tap < taps; tap += part.warps, walk.next(p.kernel_rows, p.kernel_columns)) {
        const int at = corner(p, walk.row + 1, walk.column + 1) + column;
        int count = first ? 0 : weight_ones[at];
        for (int group = 0; group < groups; group++) {
            count += ones(kernels[weight_at<Word>(group * taps + tap, column)]);
        }
        weight_ones[at] = count;
    }
}

// And adds them up from the upper left corner, when all groups have been counted.
__device__ inline void total_weight_ones(const Problem& p, int* weight_ones) {
    for (int column = thread_index(); column < blockDim.x; column += thread_count()) {
        for (int kx = 0; kx <= p.kernel_columns; kx++) weight_ones[corner(p, 0, kx) + column] = 0;
        for (int ky = 1; ky <= p.kernel_rows; ky++) {
            int count = 0;  // of this row of taps
            weight_ones[corner(p, ky, 0) + column] = 0;
            for (int kx = 1; kx <= p.kernel_columns; kx++) {
                count += weight_ones[corner(p, ky, kx) + column];
                weight_ones[corner(p, ky, kx) + column] = count + weight_ones[corner(p, ky - 1, kx) + column];
            }
        }
    }
}

// offsets[stage_groups * taps]: of each word of a window, from its first one.
__device__ inline void set_offsets(const Problem& p, const Tile& tile, int* offsets) {
    const int rows = p.kernel_rows, columns = p.kernel_columns;
    Walk at(rows, columns, thread_index(), thread_count());
    for (int k = thread_index(); at.group < p.stage_groups; k += thread_count(), at.next(rows, columns)) {
        offsets[k] = (at.group * tile.rows + at.row) * tile.columns + at.column;
    }
}

// Ones in a column's weights, of the taps that count. weight_ones: that column's.
__device__ inline int ones_that_count(const Problem& p, const Taps& counting, const int* weight_ones) {
    return weight_ones[corner(p, counting.end_row, counting.end_column)] -
           weight_ones[corner(p, counting.first_row, counting.end_column)] -
           weight_ones[corner(p, counting.end_row, counting.first_column)] +
           weight_ones[corner(p, counting.first_row, counting.first_column)];
}

// Products of CHUNKS times 16 windows with the weights of 32 channels, which are read once for all of them. This
// thread's rows begin at upper and lower of each chunk; ``busy`` has a bit for each chunk with a window in the map.
template <bool XOR, typename Word, int CHUNKS>
__device__ inline void multiply_windows(const Part& part, int words, unsigned busy, const Word* features,
                                        const int (&upper)[CHUNKS], const int (&lower)[CHUNKS], const int* offsets,
                                        const Word* kernels, int (&sum)[CHUNKS][4][4], int (&input_ones)[CHUNKS][2]) {
    constexpr int STEP = 256 / (8 * sizeof(Word)), LOADS = LANE_WORDS<Word>;  // words of a row in one product
    for (int first = 0; first < words; first += STEP) {
        int offset[LOADS], row[LOADS];
        Word kept[LOADS];  // all bits, or none behind the last word: no branch around a read
        unsigned columns[4][2];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int k = first + part.member + 4 * i;
            row[i] = min(k, words - 1), kept[i] = k < words ? ~Word(0) : 0;
            offset[i] = offsets[row[i]];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            Word word[LOADS];
#pragma unroll
            for (int i = 0; i < LOADS; i++) {
                word[i] = kernels[weight_at<Word>(row[i], part.loaded_column(j))] & kept[i];
            }
            pieces(word, columns[j][0], columns[j][1]);
        }
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
            if (!(busy >> chunk & 1)) continue;
            Word high[LOADS], low[LOADS];
            unsigned rows[4];
#pragma unroll
            for (int i = 0; i < LOADS; i++) {
                high[i] = features[upper[chunk] + offset[i]] & kept[i];
                low[i] = features[lower[chunk] + offset[i]] & kept[i];
            }
            pieces(high, rows[0], rows[2]);
            pieces(low, rows[1], rows[3]);
            if constexpr (!XOR) {
                input_ones[chunk][0] += ones(rows[0]) + ones(rows[2]);
                input_ones[chunk][1] += ones(rows[1]) + ones(rows[3]);
            }
#pragma unroll
            for (int j = 0; j < 4; j++) multiply<XOR>(sum[chunk][j], rows, columns[j]);
        }
    }
}

// The sum of the counts of the four lanes that have pieces of the same rows.
__device__ inline int sum_of_quad(int count) {
    count += __shfl_xor_sync(WARP, count, 1);
    return count + __shfl_xor_sync(WARP, count, 2);
}

// Whether mismatches hang on how many ones there are in weights, too.
template <bool XOR>
__device__ inline bool needs_weight_ones(const Problem& p) {
    return !XOR || p.pad == PAD_EXACT;
}

// What this thread must know of its eight columns of the products.
struct Columns {
    int ones[4][2];   // in the weights, of all taps
    int limit[4][2];  // the threshold; for channels that don't exist one that no dot reaches
};

template <bool XOR>
__device__ inline Columns columns_of_thread(const Problem& p, const Tile& tile, const Part& part,
                                            const int* weight_ones, const int* threshold) {
    Columns columns;
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const int column = part.result_column(j, odd), channel = tile.channel + channel_of(column);
            const int all = corner(p, p.kernel_rows, p.kernel_columns) + column;
            columns.ones[j][odd] = needs_weight_ones<XOR>(p) ? weight_ones[all] : 0;
            columns.limit[j][odd] = 0x7fffffff;
            if (threshold && channel < p.out_channels) columns.limit[j][odd] = __ldg(threshold + channel);
        }
    }
    return columns;
}

// The mismatches of a product.
//   XOR: sum = mismatches of the taps that count + ones in the weights of the others
//   AND: mismatches = ones in the input + ones in the weights, of taps that count, - 2 * sum
template <bool XOR>
__device__ inline int mismatches_of(int sum, int in_window, int in_weight, int in_all_weights) {
    return XOR ? sum - (in_all_weights - in_weight) : in_window + in_weight - 2 * sum;
}

// Dots of 16 positions and 32 channels from the sums of their products; votes on them, or stores them. WHOLE: all taps
// of all these positions count.
template <bool XOR, bool WHOLE, typename Word, typename At>
__device__ inline void store_products(const Problem& p, const Tile& tile, const Part& part, At at,
                                      const int (&sum)[4][4], const int (&input_ones)[2], const Columns& columns,
                                      const int* weight_ones, unsigned* bits, int* dots) {
    unsigned votes[2][4][2];  // of the upper and the lower eight positions: 4 channels of each
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const Position here = at(part.quad + 8 * half);
        const int row = tile.row + here.row, column = tile.column + here.column;
        const Taps counting = WHOLE || !here.inside ? Taps{0, p.kernel_rows, 0, p.kernel_columns}
                                                    : counting_taps(p, row, column);
        const int products = p.channels * counting.count();
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int odd = 0; odd < 2; odd++) {
                const int here_column = part.result_column(j, odd), all = columns.ones[j][odd];
                const int in_weight = WHOLE ? all : ones_that_count(p, counting, weight_ones + here_column);
                const int dot = products - 2 * mismatches_of<XOR>(sum[j][2 * half + odd], input_ones[half], in_weight, all);
                if (dots) {
                    const int channel = tile.channel + channel_of(here_column);
                    if (here.inside) store_dot(p, tile.image, channel, row, column, dot, dots);
                } else {
                    votes[half][j][odd] = __ballot_sync(WARP, dot >= columns.limit[j][odd]);
                }
            }
        }
    }
    const Position own = at(part.lane % 16);
    if (dots || part.lane >= 16 || !own.inside) return;
    unsigned word = 0;  // of position ``lane``
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const unsigned vote = part.lane < 8 ? votes[0][j][odd] : votes[1][j][odd];
            word |= (vote >> 4 * (part.lane % 8) & 15) << (8 * j + 4 * odd);
        }
    }
    const int channel = tile.channel + part.channel;
    store_word<Word>(p, tile.image, channel, tile.row + own.row, tile.column + own.column, word, bits);
}

// As binary_conv_popc. A window and a channel's weights are rows of 256 bits; input of taps that don't count is 0.
template <typename Word, int ROWS, int COLUMNS, int KERNEL, bool XOR>
__global__ void binary_conv_mma(const Word* input, const Word* weight, const int* threshold, unsigned* bits, int* dots,
                                Problem p) {
    fix_kernel<KERNEL>(p);
    constexpr int CHUNKS = (ROWS * COLUMNS + 15) / 16;  // of 16 positions that a warp works on
    const int tile_rows = blockDim.y * ROWS, tile_columns = blockDim.z * COLUMNS;
    const Tile tile = place(p, 8 * sizeof(Word), tile_rows, tile_columns);
    const Part part = part_of_thread();
    const int taps = p.kernel_rows * p.kernel_columns;
    Word* buffers = reinterpret_cast<Word*>(shared_memory);
    int* offsets = reinterpret_cast<int*>(buffers + buffer_words<Word>(p, tile));
    int* weight_ones = offsets + p.stage_groups * taps;
    set_offsets(p, tile, offsets);

    int upper[CHUNKS], lower[CHUNKS];
    unsigned busy = 0, whole = 0;  // chunks with a position in the map; with whole windows only
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        const int first = part.first_position(chunk) + part.quad;
        const Position high = position(p, tile, first, tile_rows, tile_columns);
        const Position low = position(p, tile, first + 8, tile_rows, tile_columns);
        upper[chunk] = first_input(p, tile, high), lower[chunk] = first_input(p, tile, low);
        busy |= unsigned(__ballot_sync(WARP, high.inside || low.inside) != 0) << chunk;
        const bool parted = !has_whole_window(p, tile, high) || !has_whole_window(p, tile, low);
        whole |= unsigned(__ballot_sync(WARP, parted) == 0) << chunk;
    }

    const Walk own_taps(p.kernel_rows, p.kernel_columns, part.warp, part.warps);
    int sum[CHUNKS][4][4] = {}, input_ones[CHUNKS][2] = {};
    for_staged(p, tile, input, weight, buffers, [&](int first, int groups, const Word* features, const Word* kernels) {
        if (needs_weight_ones<XOR>(p)) count_weight_ones(p, part, own_taps, first == 0, groups, kernels, weight_ones);
        multiply_windows<XOR>(part, groups * taps, busy, features, upper, lower, offsets, kernels, sum, input_ones);
    });
    if (needs_weight_ones<XOR>(p)) {
        total_weight_ones(p, weight_ones);
        __syncthreads();
    }
    const Columns columns = columns_of_thread<XOR>(p, tile, part, weight_ones, threshold);

#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        if (!(busy >> chunk & 1)) continue;
        if constexpr (!XOR) {
            for (int& count : input_ones[chunk]) count = sum_of_quad(count);
        }
        const int first = part.first_position(chunk);
        const auto at = [&](int row) { return position(p, tile, first + row, tile_rows, tile_columns); };
        if (whole >> chunk & 1) {
            store_products<XOR, true, Word>(p, tile, part, at, sum[chunk], input_ones[chunk], columns, weight_ones, bits,
                                            dots);
        } else {
            store_products<XOR, false, Word>(p, tile, part, at, sum[chunk], input_ones[chunk], columns, weight_ones,
                                             bits, dots);
        }
    }
}

// ---- max pool of bits

// The OR of the words in each window, in layout N(C/B)HWB; a thread makes one of ``count`` words. Taps outside the map
// add nothing.
template <typename Word>
__global__ void binary_pool(const Word* input, Word* output, int count, Problem p) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    const int column = index % p.out_width, row = index / p.out_width % p.out_height;
    const int y = row * p.stride_rows - p.top, x = column * p.stride_columns - p.left;
    const long long map = (long long)(index / p.out_width / p.out_height) * p.height * p.width;
    Word word = 0;
    for (int ky = max(0, -y); ky < min(p.kernel_rows, p.height - y); ky++) {
        for (int kx = max(0, -x); kx < min(p.kernel_columns, p.width - x); kx++) {
            word |= __ldg(input + map + (y + ky) * p.width + x + kx);
        }
    }
    output[index] = word;
}
