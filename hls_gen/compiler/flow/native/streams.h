// Stores between two processes, as in streams.py and stores.py: who puts a word in, who takes it out, and when.

#pragma once

#include "kahn.h"

// Numbers that components take from elsewhere, in the order of numbers_of_timing in record.py.
struct Timing {
    Cycle give_back, first_step, credits, lut_ram_words, skip_word, map_held, frames_in_flight, flag_place, judging,
        header_bits, to_memory, long_ago;
};

// A change of width (hls_gen/design/gearbox.py): words that become one, or pieces that one becomes.
struct Gear {
    int64_t together, pieces;

    Gear(int64_t source, int64_t target)
        : together(source <= target ? target / source : 1),
          pieces(source <= target ? 1 : (source + target - 1) / target) {}
};

// Takes words in.
struct Sink : virtual Component {
    // Cycle in which the next word goes in, >= the given one; or UNKNOWN, and then `room` is what it waits for.
    virtual Cycle put(Cycle cycle) = 0;
    virtual Wait room() const = 0;
    // Give on what can be when no other word comes; false where a word waits for `room`.
    virtual bool flush() { return true; }
    // Most words that were in it at a time.
    virtual int64_t level() { return 0; }
};

// In which each word waits a cycle, and then until the sink behind takes it; as in skid.py.
class StreamRegister : public Sink {
  public:
    explicit StreamRegister(Sink* behind) : behind(behind) {}

    Cycle put(Cycle cycle) override {
        if (!leave()) return UNKNOWN;
        const Cycle came = std::max(cycle, left);
        there = came + 1;
        leave();
        return came;
    }
    bool flush() override { return leave() && behind->flush(); }
    Wait room() const override { return behind->room(); }

  private:
    Sink* behind;
    Cycle there = UNKNOWN, left = 0;

    bool leave() {
        if (there != UNKNOWN) {
            const Cycle taken = behind->put(there);
            if (taken == UNKNOWN) return false;
            left = taken;
            there = UNKNOWN;
        }
        return true;
    }
};

// Gives words out.
struct Source : virtual Component {
    // First cycle in which the next word can be taken; or UNKNOWN, and then `word` is what it waits for.
    virtual Cycle next() = 0;
    virtual void taken(Cycle cycle) = 0;
    virtual Wait word() const = 0;
};

// Items one after the other, round and round.
template <class Item> class Again {
  public:
    explicit Again(std::vector<Item> items) : items(std::move(items)) {}
    const Item& next() {
        const Item& item = items[at];
        at = at + 1 == items.size() ? 0 : at + 1;
        return item;
    }

  private:
    std::vector<Item> items;
    size_t at = 0;
};

// Most words in a store that came in and left in these cycles; `out` gives that of a word, or UNKNOWN.
template <class Out> int64_t level(const std::vector<Cycle>& ins, const Out& out) {
    int64_t most = 0, left = 0;
    for (int64_t k = 0; k < int64_t(ins.size()); k++) {
        while (left <= k) {
            const Cycle cycle = out(left);
            if (cycle == UNKNOWN || cycle >= ins[size_t(k)]) break;
            left++;
        }
        most = std::max(most, k + 1 - left);
    }
    return most;
}

class TupleMemory : public Sink {
  public:
    TupleMemory(const Timing& timing, int64_t capacity, Stamps& written, Stamps& given)
        : timing(timing), capacity(capacity), written(written), given(given), waits{&given, 0} {}

    Cycle put(Cycle cycle) override {
        const int64_t over = written.size() - capacity;
        if (over >= 0) {
            if (given.size() <= over) {
                waits.wanted = over;
                return UNKNOWN;
            }
            cycle = std::max(cycle, given[over] + timing.give_back);
        }
        written.append(cycle);
        return cycle;
    }
    Wait room() const override { return waits; }
    int64_t level() override {
        return ::level(written.at, [&](int64_t k) { return k < given.size() ? given[k] : UNKNOWN; });
    }

  private:
    const Timing& timing;
    int64_t capacity;
    Stamps &written, &given;
    Wait waits;
};

// First cycle from `cycle` on in which a FIFO takes another word; see room_from in streams.py. A depth below 0 is none.
template <class Out>
Cycle room_from(const Timing& timing, Cycle cycle, int64_t depth, const std::vector<Cycle>& puts, const Out& out) {
    const int64_t count = int64_t(puts.size());
    if (depth < 0) return cycle;
    if (depth > timing.lut_ram_words) {
        while (true) {
            const int64_t over = count - (count && puts.back() == cycle - 1) - (depth - 1);
            if (over < 0) return cycle;
            const Cycle left = out(over);
            if (left == UNKNOWN) return UNKNOWN;
            if (left <= cycle - 2) return cycle;
            cycle = left + 2;
        }
    }
    if (count < depth) return cycle;
    const Cycle left = out(count - depth);
    return left == UNKNOWN ? UNKNOWN : std::max(cycle, left + 1);
}

class Fifo : public Sink, public Source {
  public:
    Fifo(const Timing& timing, int64_t depth, Stamps& puts, Stamps& takes)
        : timing(timing), depth(depth), puts(puts), takes(takes), room_waits{&takes, 0}, word_waits{&puts, 0} {}

    Cycle put(Cycle cycle) override {
        const Cycle room = room_from(timing, cycle, depth, puts.at, [&](int64_t k) { return out(k); });
        if (room != UNKNOWN) puts.append(room);
        return room;
    }
    Wait room() const override { return room_waits; }
    Wait word() const override { return word_waits; }
    Cycle next() override {
        const int64_t k = takes.size();
        if (puts.size() <= k) {
            word_waits.wanted = k;
            return UNKNOWN;
        }
        return std::max(puts[k] + 2, k ? takes[k - 1] + 1 : 0);
    }
    void taken(Cycle cycle) override { takes.append(cycle); }
    int64_t level() override {
        return ::level(puts.at, [&](int64_t k) { return out(k); });
    }

  private:
    const Timing& timing;
    int64_t depth;
    Stamps &puts, &takes;
    Wait room_waits, word_waits;

    // Cycle in which word `k`, which is in, goes to the output register.
    Cycle out(int64_t k) {
        if (!k) return puts[0] + 1;
        if (takes.size() < k) {
            room_waits.wanted = k - 1;
            return UNKNOWN;
        }
        return std::max(puts[k] + 1, takes[k - 1]);
    }
};

struct MapChunks {
    int64_t words, chunk;
};

// Words of each chunk, round and round.
class Chunks {
  public:
    explicit Chunks(const std::vector<MapChunks>& maps) : maps(maps) {}
    int64_t next() {
        if (!left) {
            map = &maps.next();
            left = map->words;
        }
        const int64_t count = std::min(map->chunk, left);
        left -= count;
        return count;
    }

  private:
    Again<MapChunks> maps;
    const MapChunks* map = nullptr;
    int64_t left = 0;
};

class PingPong : public Sink, public Source {
  public:
    PingPong(const std::vector<MapChunks>& maps, Stamps& full, Stamps& cleared)
        : full(full), cleared(cleared), writing(maps), reading(maps), room_waits{&cleared, 0}, word_waits{&full, 0} {}

    Cycle put(Cycle cycle) override {
        if (!to_write) {
            const int64_t before = full.size() - 2;  // the chunk that was in this buffer
            if (before >= 0) {
                if (cleared.size() <= before) {
                    room_waits.wanted = before;
                    return UNKNOWN;
                }
                cycle = std::max(cycle, cleared[before] + 1);
            }
            to_write = writing.next();
            largest = std::max(largest, to_write);
        }
        if (!--to_write) full.append(cycle);
        return cycle;
    }
    Wait room() const override { return room_waits; }
    Wait word() const override { return word_waits; }
    Cycle next() override {
        if (!to_read) {
            if (full.size() <= chunk + 1) {
                word_waits.wanted = chunk + 1;
                return UNKNOWN;
            }
            chunk++;
            to_read = reading.next();
        }
        read = std::max({full[chunk] + 1, read + 1, last_taken});
        if (!--to_read) cleared.append(read);
        return read + 1;
    }
    void taken(Cycle cycle) override { last_taken = cycle; }
    int64_t level() override { return largest; }

  private:
    Stamps &full, &cleared;
    Chunks writing, reading;
    Wait room_waits, word_waits;
    int64_t to_write = 0, to_read = 0, chunk = -1, largest = 0;
    Cycle read = -1, last_taken = -1;
};

struct MapSink {
    int64_t words;
    Sink* sink;
};

class Router : public Sink {
  public:
    explicit Router(const std::vector<MapSink>& maps) : maps(maps), map(this->maps.next()) {}

    Cycle put(Cycle cycle) override {
        if (!map.words) map = maps.next();
        const Cycle given = map.sink->put(cycle);
        if (given != UNKNOWN) map.words--;
        return given;
    }
    Wait room() const override { return map.sink->room(); }

  private:
    Again<MapSink> maps;
    MapSink map;
};

// What one side of a skip store does with its words.
struct Side {
    Stamps *puts, *takes, *seen;
    std::vector<int64_t> numbers;  // of each of these words among all words of the store
};

struct SkippedMap {
    int64_t words;
    bool added;
};

class SkipFifo : public Sink {
  public:
    const Timing& timing;
    Side inlet, addition;

    SkipFifo(const Timing& timing, int64_t depth, const std::vector<SkippedMap>& maps, Side inlet, Side addition)
        : timing(timing), inlet(std::move(inlet)), addition(std::move(addition)), depth(depth), maps(maps),
          waits{this->inlet.takes, 0} {}

    Cycle put(Cycle cycle) override {
        const Cycle free = room_from(timing, cycle, depth, puts, [&](int64_t k) { return out(k); });
        if (free == UNKNOWN) return UNKNOWN;
        if (!map.words) map = maps.next();
        map.words--;
        Side& side = map.added ? addition : inlet;
        of.push_back({&side, int64_t(side.numbers.size())});
        side.numbers.push_back(int64_t(puts.size()));
        side.puts->append(free);
        puts.push_back(free);
        return free;
    }
    Wait room() const override { return waits; }
    int64_t level() override {
        return ::level(puts, [&](int64_t k) { return out(k); });
    }
    // Side of the word before word `number` >= 1, and its number there.
    const std::pair<Side*, int64_t>& before(int64_t number) const { return of[size_t(number - 1)]; }

  private:
    int64_t depth;
    Again<SkippedMap> maps;
    SkippedMap map{0, false};
    std::vector<Cycle> puts, outs;
    std::vector<std::pair<Side*, int64_t>> of;
    Wait waits;

    // A word leaves the memory for the first of the two registers behind it as the word before goes on to the second.
    Cycle out(int64_t k) {
        while (int64_t(outs.size()) <= k) {
            const size_t n = outs.size();
            Cycle free = n ? outs.back() + 1 : 0;
            if (n > 1) {
                const auto& [side, number] = before(int64_t(n) - 1);
                if (side->takes->size() <= number) {
                    waits = {side->takes, number};
                    return UNKNOWN;
                }
                free = std::max(free, (*side->takes)[number]);
            }
            outs.push_back(std::max(puts[n] + 1, free));
        }
        return outs[size_t(k)];
    }
};

class SkipSource : public Source {
  public:
    SkipSource(SkipFifo& store, const Side& side)
        : store(store), side(store.addition.puts == side.puts ? store.addition : store.inlet),
          waits{this->side.puts, 0} {}

    Cycle next() override {
        const int64_t k = side.takes->size();
        if (side.puts->size() <= k) {
            waits = {side.puts, k};
            return UNKNOWN;
        }
        const int64_t number = side.numbers[size_t(k)];
        if (!number) return (*side.puts)[k] + store.timing.skip_word;
        const auto& [other, before] = store.before(number);
        if (other != &side && other->seen->size() <= before) {
            waits = {other->seen, before};
            return UNKNOWN;
        }
        return std::max((*side.puts)[k] + store.timing.skip_word, (*other->takes)[before] + 1);
    }
    void taken(Cycle cycle) override {
        side.takes->append(cycle);
        side.seen->append(cycle);
    }
    Wait word() const override { return waits; }

  private:
    SkipFifo& store;
    Side& side;
    Wait waits;
};

class JoinedSource : public Source {
  public:
    // `order`: where each word of a tuple comes from.
    explicit JoinedSource(std::vector<Source*> order) : order(std::move(order)), now(this->order.next()) {}

    Cycle next() override { return now->next(); }
    void taken(Cycle cycle) override {
        now->taken(cycle);
        now = order.next();
    }
    Wait word() const override { return now->word(); }

  private:
    Again<Source*> order;
    Source* now;
};

class Fork : public Sink {
  public:
    Fork(Sink* first, Sink* second) : sinks{first, second} {}

    Cycle put(Cycle cycle) override {
        for (int k = 0; k < 2; k++)
            if (done[k] == UNKNOWN) done[k] = sinks[k]->put(cycle);
        if (done[0] == UNKNOWN || done[1] == UNKNOWN) return UNKNOWN;
        const Cycle both = std::max(done[0], done[1]);
        done[0] = done[1] = UNKNOWN;
        return both;
    }
    Wait room() const override { return sinks[done[0] == UNKNOWN ? 0 : 1]->room(); }

  private:
    Sink* sinks[2];
    Cycle done[2] = {UNKNOWN, UNKNOWN};
};
