// The addition behind the activation, as in addition.py.

#pragma once

#include "results.h"

// Steps made of words of the skip store, which a process collects.
class CollectedSteps : public Process, public Source {
  public:
    CollectedSteps(Source* words, int64_t together, int64_t count, Stamps& offered, Stamps& freed)
        : words(words), together(together), count(count), offered(offered), freed(freed) {}

    void resume() override {
        BEGIN;
        for (step = 0; step < count; step++) {
            cycle = free;
            for (number = 0; number < together; number++) {
                while ((there = words->next()) == UNKNOWN) {
                    wait_for(words->word());
                    PAUSE;
                }
                cycle = std::max(there, free);
                words->taken(cycle);
            }
            offered.append(cycle + 1);
            while (freed.size() <= step) {
                wait_for(freed, step);
                PAUSE;
            }
            free = freed[step];
        }
        END
    }

    Wait word() const override { return {&offered, freed.size()}; }
    Cycle next() override { return freed.size() < offered.size() ? offered[freed.size()] : UNKNOWN; }
    void taken(Cycle cycle) override { freed.append(cycle); }

  private:
    Source* words;
    int64_t together, count, step = 0, number = 0;
    Stamps &offered, &freed;
    Cycle free = -1, cycle = 0, there = 0;
};

class AddedSteps : virtual public Component {
  public:
    AddedSteps(Source* source, int64_t pieces) : source(source), pieces(pieces) {}

    Wait word() const { return source->word(); }
    Cycle next() {
        if (there == UNKNOWN) there = source->next();
        return there;
    }
    void taken(Cycle cycle, bool last) {
        if (++place == pieces || last) {
            place = 0;
            there = UNKNOWN;
            source->taken(cycle);
        }
    }

  private:
    Source* source;
    int64_t pieces, place = 0;
    Cycle there = UNKNOWN;
};

struct MapSteps {
    int64_t steps;
    bool marked;  // whether something is added, or whether the map is kept
};

class AdditionUnit : public Taker {
  public:
    AdditionUnit(int64_t latency, const std::vector<MapSteps>& maps, AddedSteps* added, Taker* behind)
        : stages(latency - 1, behind), behind(behind), maps(maps), added(added) {}

    Cycle take(Cycle cycle, bool last) override {
        if ((in_row || leaving) && !empty()) return UNKNOWN;
        if (!map.steps) map = maps.next();
        if (!map.marked) {  // past the stages, from the second cycle on after the steps before have left them
            const Cycle given = stages.given();
            if (given == UNKNOWN) return UNKNOWN;
            const Cycle taken = behind->take(std::max(cycle, given + 2), last);
            if (taken != UNKNOWN) map.steps--;
            return taken;
        }
        map.steps--;
        const Cycle taken = row = std::max(cycle, gone);
        row_ends = last;
        in_row = true;
        empty();
        return taken;
    }
    bool flush() override { return empty() && stages.drained(); }
    void room(Waits& waits) override {
        if (!in_row || !stages.drained()) stages.room(waits);
        if (in_row) waits.push_back(added->word());
    }

  private:
    ResultStages stages;
    Taker* behind;
    Again<MapSteps> maps;
    MapSteps map{0, false};
    AddedSteps* added;
    bool in_row = false, row_ends = false, leaving = false, leaving_ends = false;
    Cycle row = 0, gone = -1;

    // Whether it is known when the step in the row register leaves it.
    bool empty() {
        if (in_row) {
            const Cycle there = added->next();
            if (there == UNKNOWN) {
                stages.drained();  // what is added may be on its way, behind the steps before
                return false;
            }
            stages.enter(std::max(row, there - 1), row_ends);
            in_row = false;
            leaving = true;
            leaving_ends = row_ends;
        }
        if (leaving) {
            const Cycle left = stages.left();
            if (left == UNKNOWN) return false;
            added->taken(left, leaving_ends);
            gone = left;
            leaving = false;
        }
        return true;
    }
};

class KeptSteps : public Taker {
  public:
    KeptSteps(const std::vector<MapSteps>& maps, Sink* store, Taker* behind) : maps(maps), store(store), behind(behind) {}

    Cycle take(Cycle cycle, bool last) override {
        if (!map.steps) map = maps.next();
        if (map.marked && stored == UNKNOWN) {
            stored = store->put(cycle);
            full = stored == UNKNOWN;
        }
        if (given == UNKNOWN) given = behind->take(cycle, last);
        if (given == UNKNOWN || (map.marked && stored == UNKNOWN)) return UNKNOWN;
        const Cycle taken = std::max(given, stored == UNKNOWN ? 0 : stored);
        map.steps--;
        stored = given = UNKNOWN;
        return taken;
    }
    bool flush() override { return behind->flush(); }
    void room(Waits& waits) override {
        if (given == UNKNOWN) behind->room(waits);
        if (full) waits.push_back(store->room());
    }

  private:
    Again<MapSteps> maps;
    MapSteps map{0, false};
    Sink* store;
    Taker* behind;
    bool full = false;
    Cycle stored = UNKNOWN, given = UNKNOWN;
};
