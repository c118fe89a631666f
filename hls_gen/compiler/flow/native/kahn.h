// Processes that read and write time stamps, as in kahn.py: who waits for whom, and who goes on.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

using Cycle = int64_t;

constexpr Cycle UNKNOWN = std::numeric_limits<Cycle>::min();  // what depends on stamps that do not exist yet

// Cycles of events, in their order.
struct Stamps {
    // A process that waits for stamp `wanted`; it still does if it has run as often as here.
    struct Reader {
        int64_t process, runs, wanted;
    };

    std::vector<Cycle> at;
    std::vector<Reader> readers;

    int64_t size() const { return int64_t(at.size()); }
    Cycle operator[](int64_t k) const { return at[size_t(k)]; }
    void append(Cycle cycle) { at.push_back(cycle); }
    void append(Cycle cycle, int64_t count) { at.insert(at.end(), size_t(count), cycle); }
};

// Stamp number `wanted` of these stamps.
struct Wait {
    Stamps* stamps = nullptr;
    int64_t wanted = 0;

    bool over() const { return stamps->size() > wanted; }
};

using Waits = std::vector<Wait>;

// What a network consists of.
struct Component {
    virtual ~Component() = default;
};

// A process: `resume` goes on until it needs a stamp that does not exist yet. PAUSE leaves it, and the next call of it
// goes on behind that place; so what must last is a member.
struct Process : virtual Component {
    std::vector<Stamps*> writes;
    Waits waits;  // what it waits for; nothing when it is done, and before it has begun
    bool begun = false;
    int64_t runs = 0;

    virtual void resume() = 0;

    bool ready() const {
        return !begun || std::any_of(waits.begin(), waits.end(), [](const Wait& wait) { return wait.over(); });
    }

  protected:
    int place = 0;

    void wait_for(const Wait& wait) { waits.push_back(wait); }
    void wait_for(Stamps& stamps, int64_t wanted) { waits.push_back({&stamps, wanted}); }
};

#define BEGIN                                                                                                          \
    switch (place) {                                                                                                   \
    case 0:
#define PAUSE                                                                                                          \
    do {                                                                                                               \
        place = __LINE__;                                                                                              \
        return;                                                                                                        \
    case __LINE__:;                                                                                                    \
    } while (false)
#define END }

// Runs processes until none can go on, those that come first in the list first.
class Scheduler {
  public:
    explicit Scheduler(const std::vector<Process*>& processes)
        : processes(processes), ready((processes.size() + 63) / 64) {}

    void go_on() {
        for (size_t k = 0; k < processes.size(); k++)
            if (processes[k]->ready()) wake(k);
        for (size_t word = 0; word < ready.size();) {
            if (!ready[word]) {
                word++;
                continue;
            }
            const size_t k = word * 64 + size_t(__builtin_ctzll(ready[word]));
            ready[word] &= ready[word] - 1;
            run(k);
            word = 0;
        }
    }

  private:
    const std::vector<Process*>& processes;
    std::vector<uint64_t> ready;

    void wake(size_t k) {
        processes[k]->runs++;
        ready[k / 64] |= uint64_t(1) << k % 64;
    }

    void run(size_t k) {
        Process& process = *processes[k];
        process.begun = true;
        process.waits.clear();
        process.resume();
        for (const Wait& wait : process.waits) {
            auto& readers = wait.stamps->readers;
            const Stamps::Reader reader{int64_t(k), process.runs, wait.wanted};
            if (readers.empty() || readers.back().process != reader.process || readers.back().runs == reader.runs)
                readers.push_back(reader);
            else
                readers.back() = reader;
        }
        for (Stamps* stamps : process.writes) {
            auto& readers = stamps->readers;
            size_t left = 0;
            for (const auto& reader : readers) {
                if (processes[size_t(reader.process)]->runs != reader.runs) continue;
                if (stamps->size() > reader.wanted)
                    wake(size_t(reader.process));
                else
                    readers[left++] = reader;
            }
            readers.resize(left);
        }
    }
};
