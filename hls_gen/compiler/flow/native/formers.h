// The line former and the window former, as in line_former.py and window_former.py.

#pragma once

#include "streams.h"

// What a line former makes of a map (hls_gen/design/formed_lines.py).
struct FormedLines {
    int64_t words, times;
    std::vector<int64_t> inside, hits;  // of each step: whether a position comes, whether a window is complete with it
};

class LineFormer : public Sink {
  public:
    LineFormer(Sink* memory, const std::vector<FormedLines>& maps)
        : memory(memory), maps(maps), formed(&this->maps.next()) {}

    Cycle put(Cycle cycle) override {
        if (!flush()) return UNKNOWN;
        const Cycle through = go(cycle);
        flush();
        return through;
    }
    bool flush() override {
        while (!formed->inside[size_t(step)])
            if (go(free) == UNKNOWN) return false;
        return true;
    }
    Wait room() const override { return memory->room(); }

  private:
    Sink* memory;
    Again<FormedLines> maps;
    const FormedLines* formed;
    int64_t time = 0, step = 0, word = 0;
    Cycle free = 0;

    // The next word goes through.
    Cycle go(Cycle cycle) {
        Cycle through = std::max(cycle, free);
        if (formed->hits[size_t(step)]) through = memory->put(through);
        if (through == UNKNOWN) return UNKNOWN;
        free = through + 1;
        if (++word == formed->words) {
            word = 0;
            step++;
        }
        if (step == int64_t(formed->hits.size())) {
            step = 0;
            time++;
        }
        if (time == formed->times) {
            time = 0;
            formed = &maps.next();
        }
        return through;
    }
};

// What a window former makes of a map (hls_gen/design/formed_windows.py).
struct FormedWindows {
    int64_t words, word_positions;
    bool ahead;
    std::vector<int64_t> inside, hits;  // of each position: whether it comes, whether a window is complete with it
};

class WindowFormer : public Source {
  public:
    WindowFormer(Source* source, FormedWindows windows, int64_t frames)
        : source(source), formed(std::move(windows)), frames(frames) {
        for (const int64_t comes : formed.inside) in_frame += comes;
        unread = in_frame;
    }

    Wait word() const override { return source->word(); }
    Cycle next() override {
        advance();
        if (copied) return latest + 1;
        return words ? std::max(step, latest) + 1 : UNKNOWN;
    }
    void taken(Cycle cycle) override {
        latest = cycle;
        if (copied) {
            copied--;
        } else {
            words--;
            if (formed.ahead) {
                copied = words;
                words = 0;
            }
            if (!words) left = cycle;
        }
        advance();  // words of the frame may have to come in before another one is wanted
    }

  private:
    Source* source;
    FormedWindows formed;
    int64_t frames, in_frame = 0, number = 0, unread = 0, held = 0, words = 0, copied = 0;
    Cycle loaded = -1, emptied = -1, step = 0, latest = -1, left = -1;

    bool waits() const { return formed.inside[size_t(number)] || !number; }

    void advance() {
        while (!words && frames && load()) {
            Cycle cycle = std::max(step + 1, left);
            if (waits()) cycle = std::max(cycle, loaded + 1);
            if (formed.inside[size_t(number)]) {
                unread--;
                if (!--held) emptied = cycle;
            }
            step = cycle;
            words = formed.words * formed.hits[size_t(number)];
            if (++number == int64_t(formed.inside.size())) {
                number = 0;
                unread = in_frame;
                frames--;
            }
        }
        if (frames) load();
    }

    // Fill the word register where it is empty; false where the next position waits for that.
    bool load() {
        if (!held && unread) {
            const Cycle cycle = source->next();
            if (cycle == UNKNOWN) return !waits();
            loaded = std::max(cycle, emptied);
            source->taken(loaded);
            held = std::min(formed.word_positions, unread);
        }
        return held > 0 || !waits();
    }
};
