// The host's streams, as in ports.py, skid.py and loader.py.

#pragma once

#include "streams.h"

class FrameSource : public Source {
  public:
    std::vector<Cycle> accepted;  // cycles in which headers were accepted

    // `entered`, `released`: of the loader that brings weights; nullptr where all stay on the device.
    FrameSource(const Timing& timing, int64_t words, int64_t word_bits, int64_t stream_bits, bool binariser,
                Stamps& done, Stamps& admitted, Stamps* entered, Stamps* released)
        : timing(timing), words(words), gear(word_bits, stream_bits), header(timing.header_bits / stream_bits),
          binariser(binariser), done(done), admitted(admitted), entered(entered), released(released), waits{&done, 0} {}

    Cycle next() override {
        if (!number && !accept()) return UNKNOWN;
        if (number % gear.together) {
            offered = left + 1;
        } else {  // the gearbox is free in the cycle in which its last word leaves
            beat = std::max(beat + 1, left) + gear.pieces - 1;
            offered = beat + 1;
            if (entered && number + gear.together >= words) entered->append(beat);
        }
        number = (number + 1) % words;
        if (!binariser) return offered;
        left = std::max(offered, latest);  // into the binariser's register
        return left + 1;
    }
    void taken(Cycle cycle) override {
        latest = cycle;
        if (!binariser) left = cycle;
    }
    Wait word() const override { return waits; }

  private:
    const Timing& timing;
    int64_t words;
    Gear gear;  // words of a stream word, stream words of a word
    int64_t header;
    bool binariser;
    Stamps &done, &admitted;
    Stamps *entered, *released;
    Wait waits;
    int64_t number = 0;
    Cycle offered = 0, beat = -1, left = -1, latest = -1;

    bool known(Stamps& stamps, int64_t wanted) {
        waits = {&stamps, wanted};
        return waits.over();
    }

    bool accept() {
        const int64_t frame = int64_t(accepted.size());
        if (!known(admitted, frame)) return false;
        if (released) {
            if (!known(*released, frame)) return false;
            beat = (*released)[frame];
        }
        Cycle cycle = frame ? beat + header + timing.judging : -1;
        const int64_t first = frame - timing.frames_in_flight - 1;
        if (first >= 0) {
            if (!known(done, first)) return false;
            cycle = std::max(cycle, done[first] + timing.flag_place);
        }
        accepted.push_back(cycle);
        beat = cycle;
        return true;
    }
};

class RawResults : public Sink {
  public:
    RawResults(int64_t words, Stamps& done) : words(words), done(done) {}

    Cycle put(Cycle cycle) override {
        if (++number == words) {
            number = 0;
            done.append(cycle + 2);
        }
        return cycle;
    }
    Wait room() const override { return {&done, 0}; }  // never waited for

  private:
    int64_t words, number = 0;
    Stamps& done;
};

class MapResults : public Sink {
  public:
    MapResults(const Timing& timing, std::vector<int64_t> maps, int64_t word_bits, int64_t stream_bits,
               Stamps& done)
        : maps(std::move(maps)), gear(word_bits, stream_bits), done(done), outs(size_t(timing.map_held), -1) {}

    Cycle put(Cycle cycle) override {
        cycle = std::max(cycle, outs.front() + 1);
        outs.pop_front();
        const Cycle out = std::max(cycle + 1, latest);
        outs.push_back(out);
        latest = std::max(out + 1, free);
        const bool ends = ++number == maps[map];
        if (number % gear.together == 0 || ends) free = latest + gear.pieces;
        if (ends) {
            number = 0;
            map = (map + 1) % maps.size();
            if (!map) done.append(free + 1);
        }
        return cycle;
    }
    Wait room() const override { return {&done, 0}; }  // never waited for

  private:
    std::vector<int64_t> maps;
    Gear gear;
    int64_t number = 0;
    Stamps& done;
    std::deque<Cycle> outs;  // cycles in which the latest words left the memory of the FIFO
    size_t map = 0;
    Cycle latest = -1, free = -1;
};

class SkidSource : public Source {
  public:
    explicit SkidSource(Source* source) : source(source) {}

    Cycle next() override {
        if (there == UNKNOWN) {
            const Cycle offered = source->next();
            if (offered == UNKNOWN) return UNKNOWN;
            there = std::max(offered, left + 1);
            source->taken(there);
        }
        return there;
    }
    void taken(Cycle cycle) override {
        left = cycle;
        there = UNKNOWN;
    }
    Wait word() const override { return source->word(); }

  private:
    Source* source;
    Cycle there = UNKNOWN, left = -1;
};

// A packet of weights, and the stamps of its NPU: cycles from which on a streamed layer's first tap may be taken, and
// those of such layers' last beats.
struct WeightPacket {
    int64_t ahead, words;
    Stamps *there, *done;
};

class WeightLoader : public Process {
  public:
    WeightLoader(const Timing& timing, std::vector<WeightPacket> packets, int64_t before, int64_t stream_bits,
                 Stamps& entered, Stamps& released, int64_t frames)
        : timing(timing), packets(std::move(packets)), before(before), header(timing.header_bits / stream_bits),
          entered(entered), released(released), frames(frames), cycle(timing.long_ago) {}

    void resume() override {
        BEGIN;
        for (frame = 0; frame < frames; frame++) {
            for (k = 0; k <= int64_t(packets.size()); k++) {
                if (k == before) {
                    released.append(cycle);
                    while (entered.size() <= frame) {
                        wait_for(entered, frame);
                        PAUSE;
                    }
                    cycle = entered[frame];
                }
                if (k == int64_t(packets.size())) break;
                packet = &packets[size_t(k)];
                cycle += header + timing.judging;
                first = packet->there->size() - packet->ahead - 1;
                if (first >= 0) {
                    while (packet->done->size() <= first) {
                        wait_for(*packet->done, first);
                        PAUSE;
                    }
                    cycle = std::max(cycle, (*packet->done)[first] + 1);
                }
                packet->there->append(cycle + packet->words + timing.to_memory);
                cycle += packet->words;
            }
        }
        END
    }

  private:
    const Timing& timing;
    std::vector<WeightPacket> packets;
    const WeightPacket* packet = nullptr;
    int64_t before, header;
    Stamps &entered, &released;
    int64_t frames, frame = 0, k = 0, first = 0;
    Cycle cycle;
};
