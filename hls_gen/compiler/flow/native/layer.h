// What a layer is to an NPU, as in layer.py.

#pragma once

#include "kahn.h"

// How a sequencer reads a map.
struct Reading {
    int64_t words, read_words, hold_words;
    bool has_skips, ends_old;
    std::vector<int64_t> taps, claiming, claims;

    int64_t windows() const { return int64_t(taps.size()); }
};

struct FlowLayer {
    int64_t groups, inner, steps, last_steps, beats;
    bool raw, streamed;
    Reading reading;
};

struct Claim {
    int64_t at, back, ahead, fresh;
};

// A pass over a window: its cycles; how many of these come before the first beat; its claims, those of the first beat's
// tap and of the skips before it in front.
struct Pass {
    int64_t cycles, lead, first, head, last;
};

// The passes over a map's windows: what a sequencer does in each of them if nothing makes it wait.
struct Passes {
    std::vector<Claim> claims;
    std::vector<Pass> windows;
    int64_t cycles = 0;

    Passes(const Reading& reading, int64_t inner, int64_t fetch) {
        const int64_t tap_cycles = reading.read_words * (inner + fetch);
        int64_t spare = -reading.hold_words, begin = 0;
        size_t next = 0;
        for (const int64_t taps : reading.taps) {
            Pass pass{0, fetch, int64_t(claims.size()), int64_t(claims.size()), 0};
            int64_t skipped = 0;
            for (; next < reading.claiming.size() && reading.claiming[next] < begin + taps; next++) {
                const int64_t tap = reading.claiming[next];
                const auto claim = [&](int64_t ahead, int64_t fresh) {
                    const int64_t before = std::max<int64_t>(spare, 0);
                    spare += ahead + fresh;
                    const int64_t at = (tap - begin) * tap_cycles + skipped;
                    claims.push_back({at, std::max<int64_t>(spare, 0) - before, ahead, fresh});
                    if (tap == begin) pass.head = int64_t(claims.size());
                    skipped += fresh == 0;
                    pass.lead += fresh == 0 && tap == begin;
                };
                const int64_t words = reading.words, count = reading.claims[next];
                if (reading.ends_old && next + 1 == reading.claiming.size()) {
                    for (int64_t k = 0; reading.has_skips && k < count; k++) claim(words, 0);
                    claim(reading.has_skips ? -1 : count * words - 1, 1);
                } else if (reading.has_skips) {
                    for (int64_t k = 0; k < count - 1; k++) claim(words, 0);
                    claim(0, words);
                } else {
                    claim(count * words - reading.read_words, reading.read_words);
                }
            }
            pass.cycles = taps * tap_cycles + skipped;
            pass.last = int64_t(claims.size());
            windows.push_back(pass);
            cycles += pass.cycles;
            begin += taps;
        }
    }
};
