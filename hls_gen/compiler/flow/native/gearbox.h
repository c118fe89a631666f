// Takers of steps: gearboxes and skid registers, as in gearbox.py and skid.py.

#pragma once

#include "formers.h"

// Takes steps.
struct Taker : virtual Component {
    // Cycle, >= the given one, in which the next step is taken, or UNKNOWN; `last`: a tuple ends with it.
    virtual Cycle take(Cycle cycle, bool last) = 0;
    // Give on all that can be; false if it is not known yet when that leaves.
    virtual bool flush() = 0;
    // What `take` or `flush` waits for.
    virtual void room(Waits& waits) = 0;
};

class Gearbox : public Taker {
  public:
    Gearbox(int64_t source, int64_t target, Sink* sink) : sink(sink), gear(source, target) {}

    Cycle take(Cycle cycle, bool last) override {
        if (offers && !empty()) return UNKNOWN;
        cycle = std::max(cycle, free);
        if (++place == gear.together || last) {
            place = 0;
            offer = cycle + 1;
            offers = gear.pieces;
            empty();
        }
        return cycle;
    }
    bool flush() override { return empty(); }
    void room(Waits& waits) override {
        if (!flush()) waits.push_back(sink->room());
    }

  private:
    Sink* sink;
    Gear gear;
    int64_t place = 0, offers = 0;
    Cycle offer = 0, free = -1;

    bool empty() {
        while (offers) {
            const Cycle cycle = sink->put(offer);
            if (cycle == UNKNOWN) return false;
            free = cycle;
            offer = cycle + 1;
            offers--;
        }
        return true;
    }
};

// A gearbox in front of a line former.
class LineGearbox : public Gearbox {
  public:
    LineGearbox(int64_t source, int64_t target, LineFormer* former)
        : Gearbox(source, target, former), former(former) {}

    bool flush() override { return Gearbox::flush() && former->flush(); }

  private:
    LineFormer* former;
};

struct MapGearbox {
    int64_t words;
    Gearbox* box;
};

class Gears : public Taker {
  public:
    explicit Gears(const std::vector<MapGearbox>& maps) : maps(maps) {
        for (const MapGearbox& each : maps)
            if (std::find(boxes.begin(), boxes.end(), each.box) == boxes.end()) boxes.push_back(each.box);
    }

    Cycle take(Cycle cycle, bool last) override {
        if (!map.words) map = maps.next();
        const Cycle taken = map.box->take(cycle, last);
        if (taken != UNKNOWN) map.words--;
        return taken;
    }
    bool flush() override {
        bool done = true;
        for (Gearbox* box : boxes) done &= box->flush();
        return done;
    }
    void room(Waits& waits) override {
        if (map.box) map.box->room(waits);
        for (Gearbox* box : boxes)
            if (box != map.box) box->room(waits);
    }

  private:
    Again<MapGearbox> maps;
    MapGearbox map{0, nullptr};
    std::vector<Gearbox*> boxes;
};

class Skid : public Taker {
  public:
    explicit Skid(Taker* behind) : behind(behind) {}

    Cycle take(Cycle cycle, bool last) override {
        if (waiting && !leave()) return UNKNOWN;
        came = std::max(cycle, free);
        ends = last;
        waiting = true;
        const Cycle taken = came;
        leave();
        return taken;
    }
    bool flush() override { return leave() && behind->flush(); }
    void room(Waits& waits) override { behind->room(waits); }

  private:
    Taker* behind;
    bool waiting = false, ends = false;
    Cycle came = 0, free = -1;

    bool leave() {
        if (waiting) {
            const Cycle taken = behind->take(came, ends);
            if (taken == UNKNOWN) return false;
            free = taken + 1;
            waiting = false;
        }
        return true;
    }
};
