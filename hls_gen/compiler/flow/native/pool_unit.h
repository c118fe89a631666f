// Processes of the pool, and the way past it, as in pool_unit.py.

#pragma once

#include "results.h"

// A map to the pool's issuer.
struct PooledMap {
    Passes passes;
    int64_t words, hold_words;
};

class PoolIssuer : public Process {
  public:
    PoolIssuer(const Timing& timing, int64_t latency, int64_t limit, Stamps& written, Stamps& given, Stamps& emitted,
               Stamps& taken, const std::vector<Reading>& readings, int64_t frames)
        : latency(latency), limit(limit), written(written), given(given), emitted(emitted), taken(taken),
          frames(frames), t(timing.first_step) {
        for (const Reading& each : readings) maps.push_back({{each, 1, 0}, each.words, each.hold_words});
    }

    void resume() override {
        BEGIN;
        for (frame = 0; frame < frames; frame++)
            for (map = maps.begin(); map != maps.end(); ++map) {
                for (window = map->passes.windows.begin(); window != map->passes.windows.end(); ++window) {
                    shift = t + 1;
                    final_beat = window->cycles - map->words;
                    fresh = false;
                    if (window->first < window->last) {
                        claim = &map->passes.claims[size_t(window->last - 1)];
                        fresh = claim->at == final_beat && claim->ahead >= 0;  // the last tap's tuple arrives
                    }
                    for (k = window->first; k < window->last; k++) {
                        claim = &map->passes.claims[size_t(k)];
                        given.append(shift + claim->at - 1, claim->back);
                        claimed += claim->ahead + claim->fresh;
                        if (claim->fresh && (claim->at != final_beat || claim->ahead < 0)) {
                            while (written.size() < claimed) {
                                wait_for(written, claimed - 1);
                                PAUSE;
                            }
                            shift = std::max(shift, written[claimed - 1] + 2 - claim->fresh - claim->at);
                        }
                    }
                    t = shift + final_beat - 1;
                    for (k = claimed - map->words; k < claimed; k++) {
                        t++;
                        if (fresh) {
                            while (written.size() <= k) {
                                wait_for(written, k);
                                PAUSE;
                            }
                            t = std::max(t, written[k] + 1);
                        }
                        while (true) {  // room is a register: it knows of the FIFO two cycles ago
                            while (known < emitted.size() && emitted[known] <= t - 2 - latency) known++;
                            over = known - limit;
                            if (over < 0) break;
                            while (over && taken.size() < over) {
                                wait_for(taken, over - 1);
                                PAUSE;
                            }
                            out = std::max(emitted[over] + latency + 1, over ? taken[over - 1] : 0);
                            if (out <= t - 2) break;
                            t = out + 2;
                        }
                        emitted.append(t);
                    }
                }
                given.append(t, map->hold_words);
            }
        END
    }

  private:
    int64_t latency, limit;
    Stamps &written, &given, &emitted, &taken;
    std::vector<PooledMap> maps;
    std::vector<PooledMap>::iterator map;
    std::vector<Pass>::iterator window;
    const Claim* claim = nullptr;
    int64_t frames, frame = 0, final_beat = 0, k = 0, claimed = 0, known = 0, over = 0;
    bool fresh = false;
    Cycle t, shift = 0, out = 0;
};

struct PassByMap {
    int64_t steps, pool_steps;
};

class PassBy : public Taker {
  public:
    PassBy(const std::vector<PassByMap>& maps, Taker* to_pool, Taker* outlets, Stamps& left)
        : maps(maps), to_pool(to_pool), outlets(outlets), left(left) {}

    Cycle take(Cycle cycle, bool last) override {
        if (!map.steps) map = maps.next();
        Cycle taken;
        if (map.pool_steps) {
            taken = to_pool->take(cycle, last);
        } else {
            waits = left.size() < entered;
            if (waits) return UNKNOWN;
            taken = outlets->take(entered ? std::max(cycle, left[entered - 1] + 1) : cycle, last);
        }
        if (taken != UNKNOWN && !--map.steps && map.pool_steps) entered++;
        return taken;
    }
    bool flush() override { return to_pool->flush() && outlets->flush(); }
    void room(Waits& all) override {
        if (waits) all.push_back({&left, entered - 1});
        to_pool->room(all);
        outlets->room(all);
    }

  private:
    Again<PassByMap> maps;
    PassByMap map{0, 0};
    Taker *to_pool, *outlets;
    Stamps& left;
    int64_t entered = 0;
    bool waits = false;
};

class FromPool : public Taker {
  public:
    FromPool(const std::vector<int64_t>& maps, Taker* outlets, Stamps& left)
        : maps(maps), outlets(outlets), left(left) {}

    Cycle take(Cycle cycle, bool last) override {
        if (!steps) steps = maps.next();
        const Cycle taken = outlets->take(cycle, last);
        if (taken != UNKNOWN && !--steps) left.append(taken);
        return taken;
    }
    bool flush() override { return outlets->flush(); }
    void room(Waits& waits) override { outlets->room(waits); }

  private:
    Again<int64_t> maps;
    Taker* outlets;
    Stamps& left;
    int64_t steps = 0;
};

struct SteppedMap {
    int64_t tuples, steps;  // steps of a tuple
};

// The pool results, behind the FIFO of a pool unit with weights.
class PoolResults : public Process {
  public:
    PoolResults(int64_t latency, int64_t word_steps, Stamps& emitted, Stamps& taken, ResultStages* stages,
                std::vector<SteppedMap> maps, int64_t frames)
        : latency(latency), word_steps(word_steps), emitted(emitted), taken(taken), stages(stages),
          maps(std::move(maps)), frames(frames) {}

    void resume() override {
        BEGIN;
        for (frame = 0; frame < frames; frame++)
            for (map = maps.begin(); map != maps.end(); ++map)
                for (tuple = 0; tuple < map->tuples; tuple++)
                    for (first = 0; first < map->steps; first += word_steps) {
                        while (emitted.size() <= number) {
                            if (!stages->drained()) stages->room(waits);
                            wait_for(emitted, number);
                            PAUSE;
                        }
                        // into the FIFO's register
                        last = std::max(std::max(emitted[number++] + latency + 1, last) + 1, free);
                        taken.append(last);
                        free = last;
                        for (step = first; step < std::min(first + word_steps, map->steps); step++) {
                            while ((left = stages->left()) == UNKNOWN) {
                                stages->room(waits);
                                PAUSE;
                            }
                            stages->enter(step > first ? left : std::max(free + 1, left), step == map->steps - 1);
                        }
                        free = stages->came;
                    }
        while (!stages->drained()) {
            stages->room(waits);
            PAUSE;
        }
        END
    }

  private:
    int64_t latency, word_steps;
    Stamps &emitted, &taken;
    ResultStages* stages;
    std::vector<SteppedMap> maps;
    std::vector<SteppedMap>::iterator map;
    int64_t frames, frame = 0, tuple = 0, first = 0, step = 0, number = 0;
    Cycle last = 0, free = -1, left = 0;
};

// From the pool's FIFO into the gearboxes of the outlets.
class Outlet : public Process {
  public:
    Outlet(int64_t latency, std::vector<Reading> maps, int64_t frames, Stamps& emitted, Stamps& taken, Taker* gears)
        : latency(latency), maps(std::move(maps)), frames(frames), emitted(emitted), taken(taken), gears(gears) {}

    void resume() override {
        BEGIN;
        for (frame = 0; frame < frames; frame++)
            for (map = maps.begin(); map != maps.end(); ++map)
                for (window = 0; window < map->windows(); window++)
                    for (word = 1; word <= map->words; word++) {
                        while (emitted.size() <= number) {
                            if (!gears->flush()) gears->room(waits);
                            wait_for(emitted, number);
                            PAUSE;
                        }
                        out = std::max(emitted[number++] + latency + 1, last);  // into the FIFO's register
                        while ((last = gears->take(out + 1, word == map->words)) == UNKNOWN) {
                            gears->room(waits);
                            PAUSE;
                        }
                        taken.append(last);
                    }
        while (!gears->flush()) {
            gears->room(waits);
            PAUSE;
        }
        END
    }

  private:
    int64_t latency;
    std::vector<Reading> maps;
    std::vector<Reading>::iterator map;
    int64_t frames, frame = 0, window = 0, word = 0, number = 0;
    Stamps &emitted, &taken;
    Taker* gears;
    Cycle last = 0, out = 0;
};
