// CUDA on one CPU thread: every thread of a block is a fiber, so that a kernel's source runs, unchanged, under g++.
//
// A fiber runs until it waits at a barrier or at an operation of its warp. A warp whose lanes all wait at the same
// operation does it and goes on, and when all warps wait at the same barrier, the block passes it. Anything else is an
// error that names the threads: one that is missing at a barrier or a vote, a read of global memory outside the arrays
// that were announced, a write beyond the shared memory that was asked for. Shared memory starts with a pattern, not
// with zeros. Reads by __ldg are counted. An asynchronous copy writes when its thread waits for it, and not earlier.
//
// Unlike on a GPU, threads run one after another. A warp goes as far as its next barrier before another begins, the
// last warp first: where a barrier is missing, a warp reads what those before it have not written yet. Other races show
// only where that order makes the result wrong.
#pragma once

#include <ucontext.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define FIBERS
#define __global__
#define __device__
#define __shared__

struct dim3 {
    unsigned x, y, z;
};

static dim3 threadIdx, blockIdx, blockDim;

namespace fibers {

constexpr size_t SHARED_BYTES = 256 * 1024, GUARD_BYTES = 4096, STACK_BYTES = 64 * 1024;
constexpr unsigned LANES = 32, ALL_LANES = 0xffffffffu;
constexpr int UNWRITTEN = 0xa5, GUARD = 0x5a;

enum class State { ready, barrier, warp, done };
enum class Kind { vote, shuffle_xor, multiply_xor, multiply_and };
constexpr const char* KINDS[] = {"a vote", "a shuffle", "a matrix product", "a matrix product"};

// What a thread brings to an operation of its warp, and takes from it.
struct Operation {
    Kind kind;
    int line;
    unsigned value, lane_mask, result;
    int* sum;
    const unsigned *a, *b;
};

// A word on its way to shared memory.
struct Copy {
    void* to;
    unsigned long long value;
    size_t bytes;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    dim3 thread;
    State state;
    int line;  // of the barrier where it waits
    Operation operation;
    std::deque<std::vector<Copy>> copies;  // by group; the last one is not committed yet
};

// Words of global memory that a kernel may read; reads[i], if there is such an array, counts those of word i.
struct Memory {
    const void* begin;
    size_t bytes;
    unsigned* reads;
};

static std::vector<Fiber> block;
static Fiber* current;
static ucontext_t scheduler;
static std::function<void()> kernel;
static std::vector<Memory> memories;
static char error[256];

static void say(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, sizeof error, format, arguments);
    va_end(arguments);
}

static void wait(State state) {
    current->state = state;
    swapcontext(&current->context, &scheduler);
}

static void run_fiber() {
    kernel();
    wait(State::done);
}

static unsigned collective(const Operation& operation) {
    Fiber* self = current;
    self->operation = operation;
    wait(State::warp);
    return self->operation.result;
}

// Operands of mma.m16n8k256 of .b1 by the fragment layouts of the PTX ISA: bits 32 w ... 32 w + 31 of a row or column.
static unsigned word_of_row(const Fiber* warp, unsigned row, unsigned w) {
    return warp[row % 8 * 4 + w % 4].operation.a[row / 8 + 2 * (w / 4)];
}

static unsigned word_of_column(const Fiber* warp, unsigned column, unsigned w) {
    return warp[column * 4 + w % 4].operation.b[w / 4];
}

static void multiply_warp(Fiber* warp, bool exclusive_or) {
    for (unsigned row = 0; row < 16; row++) {
        for (unsigned column = 0; column < 8; column++) {
            int& sum = warp[row % 8 * 4 + column / 2].operation.sum[row / 8 * 2 + column % 2];
            for (unsigned w = 0; w < 8; w++) {
                const unsigned a = word_of_row(warp, row, w), b = word_of_column(warp, column, w);
                sum += __builtin_popcount(exclusive_or ? a ^ b : a & b);
            }
        }
    }
}

static void operate(Fiber* warp) {
    unsigned votes = 0;
    for (unsigned lane = 0; lane < LANES; lane++) votes |= unsigned(warp[lane].operation.value != 0) << lane;
    const Operation first = warp->operation;
    if (first.kind == Kind::multiply_xor || first.kind == Kind::multiply_and) {
        multiply_warp(warp, first.kind == Kind::multiply_xor);
    }
    for (unsigned lane = 0; lane < LANES; lane++) {
        Operation& own = warp[lane].operation;
        own.result = first.kind == Kind::vote ? votes : warp[lane ^ first.lane_mask].operation.value;
        warp[lane].state = State::ready;
    }
}

static const char* where(const Fiber& fiber, char (&text)[64]) {
    const char* place = fiber.state == State::barrier ? "a barrier" : KINDS[int(fiber.operation.kind)];
    const int line = fiber.state == State::barrier ? fiber.line : fiber.operation.line;
    if (fiber.state == State::done) return "has ended";
    snprintf(text, sizeof text, "waits at %s in line %d", place, line);
    return text;
}

static bool same(const Fiber& one, const Fiber& other) {
    const Operation &a = one.operation, &b = other.operation;
    if (one.state != other.state) return false;
    if (one.state == State::barrier) return one.line == other.line;
    return one.state == State::done || (a.kind == b.kind && a.line == b.line && a.lane_mask == b.lane_mask);
}

static bool differ(const char* rule, const Fiber& one, const Fiber& other) {
    char text[2][64];
    say("block %u: %s, thread (%u, %u, %u) %s, thread (%u, %u, %u) %s", blockIdx.x, rule, one.thread.x, one.thread.y,
        one.thread.z, where(one, text[0]), other.thread.x, other.thread.y, other.thread.z, where(other, text[1]));
    return false;
}

// Runs a warp until its threads wait at a barrier or have ended. False with an error where a rule is broken.
static bool run_warp(Fiber* warp) {
    while (warp->state == State::ready) {
        bool together = false;
        for (Fiber* fiber = warp; fiber < warp + LANES; fiber++) {
            current = fiber;
            threadIdx = fiber->thread;
            swapcontext(&scheduler, &fiber->context);
            if (error[0]) return false;
            together |= fiber->state == State::warp;
        }
        if (!together) return true;
        for (unsigned lane = 1; lane < LANES; lane++) {
            if (!same(warp[0], warp[lane])) {
                return differ("all lanes of a warp must come to the same operation", warp[0], warp[lane]);
            }
        }
        operate(warp);
    }
    return true;
}

// Every thread waits at a barrier or has ended: all go on, if they are at the same one.
static bool pass_barrier() {
    for (Fiber& fiber : block) {
        if (!same(block[0], fiber)) return differ("all threads must come to the same barrier", block[0], fiber);
    }
    if (block[0].state == State::done) return true;
    for (Fiber& fiber : block) fiber.state = State::ready;
    return true;
}

static void start(Fiber& fiber, unsigned index) {
    if (!fiber.stack) fiber.stack.reset(new char[STACK_BYTES]);
    fiber.thread = {index % blockDim.x, index / blockDim.x % blockDim.y, index / blockDim.x / blockDim.y};
    fiber.state = State::ready;
    fiber.copies.assign(1, {});
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&fiber.context, run_fiber, 0);
}

static bool run_block(unsigned char* shared, size_t shared_bytes) {
    memset(shared, UNWRITTEN, shared_bytes);
    memset(shared + shared_bytes, GUARD, GUARD_BYTES);
    for (size_t i = 0; i < block.size(); i++) start(block[i], unsigned(i));
    while (block[0].state != State::done) {
        for (size_t end = block.size(); end; end -= LANES) {
            if (!run_warp(&block[end - LANES])) return false;
        }
        if (!pass_barrier()) return false;
    }
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (shared[shared_bytes + i] != GUARD) {
            say("block %u: wrote byte %zu of %zu bytes of shared memory", blockIdx.x, shared_bytes + i, shared_bytes);
            return false;
        }
    }
    return true;
}

template <typename Word>
inline void start_copy(Word* to, Word value) {
    current->copies.back().push_back({to, value, sizeof(Word)});
}

inline void commit_copies() { current->copies.emplace_back(); }

// Until no more than ``later`` of the groups that were committed are under way.
inline void wait_for_copies(size_t later) {
    while (current->copies.size() > later + 1) {
        for (const Copy& copy : current->copies.front()) memcpy(copy.to, &copy.value, copy.bytes);
        current->copies.pop_front();
    }
}

inline void multiply(bool exclusive_or, int* sum, const unsigned* a, const unsigned* b, int line = __builtin_LINE()) {
    collective({exclusive_or ? Kind::multiply_xor : Kind::multiply_and, line, 0, 0, 0, sum, a, b});
}

}  // namespace fibers

alignas(16) static unsigned long long shared_memory[(fibers::SHARED_BYTES + fibers::GUARD_BYTES) / 8];

namespace fibers {

// Runs the blocks of these numbers, one after another. Returns "" or, in one line, what went wrong.
inline std::string launch(std::function<void()> body, const std::vector<unsigned>& blocks, dim3 threads,
                          size_t shared_bytes, const std::vector<Memory>& readable) {
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const size_t count = size_t(threads.x) * threads.y * threads.z;
    error[0] = 0;
    if (count % LANES || shared_bytes > SHARED_BYTES) return "fibers: whole warps and at most 256 KiB of shared memory";
    kernel = std::move(body), memories = readable, blockDim = threads;
    block.resize(count);
    for (unsigned index : blocks) {
        blockIdx = {index, 0, 0};
        if (!run_block(reinterpret_cast<unsigned char*>(shared_memory), shared_bytes)) break;
    }
    return error;
}

}  // namespace fibers

// ---- what a kernel may call

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int __popc(unsigned word) { return __builtin_popcount(word); }
inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }

inline void __syncthreads(int line = __builtin_LINE()) {
    fibers::current->line = line;
    fibers::wait(fibers::State::barrier);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    if (mask != fibers::ALL_LANES) fibers::say("line %d: a vote must be one of all lanes", line);
    return fibers::collective({fibers::Kind::vote, line, unsigned(predicate != 0), 0, 0, nullptr, nullptr, nullptr});
}

inline int __shfl_xor_sync(unsigned mask, int value, int lane_mask, int line = __builtin_LINE()) {
    if (mask != fibers::ALL_LANES) fibers::say("line %d: a shuffle must be one of all lanes", line);
    return int(fibers::collective(
        {fibers::Kind::shuffle_xor, line, unsigned(value), unsigned(lane_mask), 0, nullptr, nullptr, nullptr}));
}

template <typename T>
inline T __ldg(const T* address) {
    for (const fibers::Memory& memory : fibers::memories) {
        const size_t at = size_t(reinterpret_cast<const char*>(address) - static_cast<const char*>(memory.begin));
        if (at >= memory.bytes) continue;  // also below the beginning: at is unsigned
        if (memory.reads) memory.reads[at / sizeof(T)]++;
        return *address;
    }
    fibers::say("block %u: thread (%u, %u, %u) reads outside every array", blockIdx.x, threadIdx.x, threadIdx.y,
                threadIdx.z);
    fibers::wait(fibers::State::done);
    return T();
}
