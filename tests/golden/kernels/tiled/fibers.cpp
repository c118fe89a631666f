// binary_conv.cu under g++, for ctypes (fiber.py), which defines PATCH_ROWS, PATCH_COLUMNS and KERNEL_SIZE.
#include "fibers.h"

#include <cstdint>
#include <string>

#include "binary_conv.cu"

// What a launch needs; mirrored by fiber.py.
struct Launch {
    const void *input, *weight;
    const int* threshold;
    unsigned* bits;
    int* dots;
    Problem problem;
    unsigned threads[3];
    const unsigned* blocks;
    uint64_t block_count, shared_bytes, input_bytes, weight_bytes, threshold_bytes;
    unsigned *input_reads, *weight_reads;
};

template <typename Word>
static std::string launch(const std::string& kernel, const Launch& l) {
    const auto run = [&](auto body) {
        const Word *input = static_cast<const Word*>(l.input), *weight = static_cast<const Word*>(l.weight);
        return fibers::launch([=] { body(input, weight, l.threshold, l.bits, l.dots, l.problem); },
                              {l.blocks, l.blocks + l.block_count}, {l.threads[0], l.threads[1], l.threads[2]},
                              l.shared_bytes,
                              {{l.input, l.input_bytes, l.input_reads},
                               {l.weight, l.weight_bytes, l.weight_reads},
                               {l.threshold, l.threshold_bytes, nullptr}});
    };
    if (kernel == "popc") return run(binary_conv_popc<Word, PATCH_ROWS, PATCH_COLUMNS, KERNEL_SIZE>);
    return run(kernel == "mma-xor" ? binary_conv_mma<Word, PATCH_ROWS, PATCH_COLUMNS, KERNEL_SIZE, true>
                                   : binary_conv_mma<Word, PATCH_ROWS, PATCH_COLUMNS, KERNEL_SIZE, false>);
}

// message: room for 256 characters; "" or what went wrong.
extern "C" __attribute__((visibility("default"))) void binary_conv(const char* kernel, int word_bits, const Launch* l,
                                                                   char* message) {
    const std::string said = word_bits == 32 ? launch<unsigned>(kernel, *l) : launch<unsigned long long>(kernel, *l);
    message[said.copy(message, 255)] = 0;
}

// The pool of ``count`` words; as binary_conv.
extern "C" __attribute__((visibility("default"))) void binary_pool(int word_bits, const void* input, uint64_t bytes,
                                                                   void* output, int count, const Problem* problem,
                                                                   unsigned threads, unsigned blocks, char* message) {
    std::vector<unsigned> order(blocks);
    for (unsigned i = 0; i < blocks; i++) order[i] = i;
    const auto run = [&](auto word) {
        using Word = decltype(word);
        const Problem p = *problem;
        const auto body = [=] {
            binary_pool<Word>(static_cast<const Word*>(input), static_cast<Word*>(output), count, p);
        };
        return fibers::launch(body, order, {threads, 1, 1}, 0, {{input, bytes, nullptr}});
    };
    const std::string said = word_bits == 32 ? run(0u) : run(0ull);
    message[said.copy(message, 255)] = 0;
}

// Where a lane's weights lie in shared memory, for blocks of a channels: which word it reads for a product (load 0, or 1
// for its second word of 32 bits), and which one it copies there (product -1).
extern "C" __attribute__((visibility("default"))) int weight_of_lane(int word_bits, int a, int lane, int product,
                                                                     int load) {
    blockDim = {unsigned(a), 1, 1}, threadIdx = {unsigned(lane), 0, 0};
    const Part part = part_of_thread();
    const int tap = product < 0 ? part.member : part.member + 4 * load;
    const int column = product < 0 ? part.quad : part.loaded_column(product);
    return word_bits == 32 ? weight_at<unsigned>(tap, column) : weight_at<unsigned long long>(tap, column);
}
