// Rows that are shared out to threads.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

constexpr int64_t TASK = 256;       // positions that a thread takes at a time
constexpr int64_t WORTH = 1 << 24;  // products for which a thread is started: some 50 microseconds

// Each thread makes a task of its own by `new_task()`, and calls `task(first, last)` for rows first .. last - 1, until
// all rows are done. There are `columns` positions in a row, each of `products` products.
template <class NewTask>
void share_out(int64_t rows, int64_t columns, int64_t products, int64_t most_threads, const NewTask& new_task) {
    const int64_t positions = rows * columns;
    const int64_t threads = std::max<int64_t>(1, std::min(most_threads, positions * products / WORTH));
    const int64_t rounds = (positions + threads * TASK - 1) / (threads * TASK);
    const int64_t share = (rows + rounds * threads - 1) / std::max<int64_t>(1, rounds * threads);
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        auto task = new_task();
        for (int64_t first; (first = next.fetch_add(share)) < rows;) task(first, std::min(first + share, rows));
    };
    std::vector<std::thread> others;
    try {
        for (int64_t k = 1; k < threads && k * share < rows; k++) others.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: those that there are do it all
    }
    work();
    for (std::thread& thread : others) thread.join();
}
