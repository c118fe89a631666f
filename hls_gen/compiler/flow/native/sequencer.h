// Processes of the array's sequencer, as in sequencer.py.

#pragma once

#include "layer.h"
#include "streams.h"

struct MapSource {
    int64_t words;
    Source* source;
};

// Words of map after map go from their sources into a store.
class Writer : public Process {
  public:
    Writer(std::vector<MapSource> maps, Sink* store, int64_t frames)
        : maps(std::move(maps)), store(store), frames(frames) {}

    void resume() override {
        BEGIN;
        for (frame = 0; frame < frames; frame++)
            for (map = maps.begin(); map != maps.end(); ++map)
                for (word = 0; word < map->words; word++) {
                    while ((cycle = map->source->next()) == UNKNOWN) {
                        flushed = store->flush();
                        wait_for(map->source->word());
                        if (!flushed) wait_for(store->room());
                        PAUSE;
                    }
                    cycle = std::max(cycle, last + 1);
                    while ((put = store->put(cycle)) == UNKNOWN) {
                        wait_for(store->room());
                        PAUSE;
                    }
                    last = put;
                    map->source->taken(put);
                }
        while (!store->flush()) {
            wait_for(store->room());
            PAUSE;
        }
        END
    }

  private:
    std::vector<MapSource> maps;
    std::vector<MapSource>::iterator map;
    Sink* store;
    int64_t frames, frame = 0, word = 0;
    bool flushed = false;
    Cycle cycle = 0, last = 0, put = 0;
};

// A layer to the issuer of beats.
struct IssuedLayer {
    Passes passes;
    int64_t groups, inner, beats, hold_words;
    bool streamed;
};

// What an issuer had counted when it issued the last beat of a frame (Count in sequencer.py).
struct Count {
    int64_t at, beats, wait_input, wait_room, wait_table, wait_weights, wait_memory;
};

class Issuer : public Process {
  public:
    std::vector<Count> counts;

    // `there`, `done`: nullptr where no weights are streamed to the NPU.
    Issuer(const Timing& timing, int64_t fetch, int64_t accumulators, int64_t latency, Stamps& written, Stamps& given,
           Stamps& arrived, Stamps& credit, Stamps* there, Stamps* done, const std::vector<FlowLayer>& layers,
           int64_t frames)
        : timing(timing), fetch(fetch), accumulators(accumulators), latency(latency), written(written), given(given),
          arrived(arrived), credit(credit), there(there), done(done), frames(frames), t(timing.first_step) {
        for (const FlowLayer& each : layers)
            this->layers.push_back({{each.reading, each.inner, fetch},
                                    each.groups,
                                    each.inner,
                                    each.beats,
                                    each.reading.hold_words,
                                    each.streamed});
        sum.wait_table = timing.first_step + 1;
    }

    void resume() override {
        BEGIN;
        for (frame = 0; frame < frames; frame++) {
            for (layer = layers.begin(); layer != layers.end(); ++layer) {
                if (layer->streamed) {
                    while (there->size() <= done->size()) {
                        wait_for(*there, done->size());
                        PAUSE;
                    }
                    wait = std::max<Cycle>(0, (*there)[done->size()] - t);
                    sum.wait_weights += wait;
                    t += wait;
                }
                for (window = layer->passes.windows.begin(); window != layer->passes.windows.end(); ++window) {
                    shift = t + 1;
                    if (accumulators > 1) {  // each kernel group needs one from its first beat on
                        for (group = 0; group < layer->groups; group++) {
                            shift = t + 1;
                            if (!group) {
                                for (begin_claims(window->first, window->head); !claimed_all(layer->inner + fetch);)
                                    PAUSE;
                                sum.wait_input += shift - begun_at;
                            }
                            begun_at = shift;
                            first = arrived.size() - accumulators;
                            for (beat = 0; beat < layer->inner; beat++) {
                                if (first + beat >= 0) {
                                    while (credit.size() <= first + beat) {
                                        wait_for(credit, first + beat);
                                        PAUSE;
                                    }
                                    shift = std::max(shift, credit[first + beat] + 1 - window->lead - beat);
                                }
                                if (single()) arrived.append(shift + window->lead + beat + latency);
                            }
                            sum.wait_room += shift - begun_at;
                            if (!group) {
                                for (begin_claims(window->head, window->last); !claimed_all(layer->inner + fetch);)
                                    PAUSE;
                                sum.wait_input += shift - begun_at;
                            }
                            t = shift + window->cycles - 1;
                            if (!single())
                                for (beat = 1 - layer->inner; beat <= 0; beat++) arrived.append(t + beat + latency);
                        }
                    } else {  // each result has a register of its own
                        for (begin_claims(window->first, window->last); !claimed_all(1 + fetch);) PAUSE;
                        sum.wait_input += shift - begun_at;
                        t = shift - 1;
                        for (group = 0; group < layer->groups; group++) {
                            t += window->cycles;
                            first = arrived.size() - timing.credits;
                            if (first >= 0) {
                                while (credit.size() <= first) {
                                    wait_for(credit, first);
                                    PAUSE;
                                }
                                wait = std::max<Cycle>(0, credit[first] + 1 - t);
                                sum.wait_room += wait;
                                t += wait;
                            }
                            arrived.append(t + latency);
                        }
                    }
                }
                given.append(t, layer->hold_words);
                wait = fetch * layer->beats / layer->inner;
                sum.beats += layer->beats;
                sum.wait_memory += wait;
                sum.wait_table += layer->groups * layer->passes.cycles - layer->beats - wait;
                if (layer->streamed) done->append(t);
            }
            sum.at = t;
            counts.push_back(sum);
        }
        END
    }

  private:
    const Timing& timing;
    int64_t fetch, accumulators, latency;
    Stamps &written, &given, &arrived, &credit;
    Stamps *there, *done;
    std::vector<IssuedLayer> layers;
    std::vector<IssuedLayer>::iterator layer;
    std::vector<Pass>::iterator window;
    Count sum{};
    int64_t frames, frame = 0, group = 0, beat = 0, first = 0, wait = 0;
    int64_t claim = 0, last_claim = 0, claimed = 0;
    bool counted = false;  // whether the claim at hand is in `claimed`
    Cycle t, shift = 0, begun_at = 0;

    // Whether every beat is a kernel group's first and last one.
    bool single() const { return window->cycles == window->lead + layer->inner; }

    void begin_claims(int64_t from, int64_t to) {
        claim = from;
        last_claim = to;
        begun_at = shift;
    }

    // Whether the words of the claims are there, each at work for `pace` cycles; `shift` is the cycle in which the pass
    // begins, as delayed by them.
    bool claimed_all(int64_t pace) {
        for (; claim < last_claim; claim++) {
            const Claim& each = layer->passes.claims[size_t(claim)];
            if (!counted) {
                given.append(shift + each.at - 1, each.back);
                claimed += each.ahead + each.fresh;
                counted = true;
            }
            if (each.fresh) {
                const int64_t last = claimed - 1;
                if (written.size() <= last) {
                    wait_for(written, last);
                    return false;
                }
                if (pace == 1)  // words come one a cycle at most, so the last one decides
                    shift = std::max(shift, written[last] + 2 - each.fresh - each.at);
                else
                    for (int64_t k = 0; k < each.fresh; k++)
                        shift = std::max(shift, written[last + 1 - each.fresh + k] + 1 - each.at - k * pace);
            }
            counted = false;
        }
        return true;
    }
};
