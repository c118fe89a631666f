// The results unit, step by step, as in results.py.

#pragma once

#include "gearbox.h"
#include "layer.h"

// The register stages of an activation: what steps pass from the value register to what takes them; see results.py for
// moves and lags.
class ResultStages : virtual public Component {
  public:
    ResultStages(int64_t depth, Taker* behind) : depth(depth), behind(behind), lags{{0, 0}} {}

    // Cycle in which the latest step came into the value register.
    Cycle came = -1;

    // A step comes into the value register, for which `left` says that it is free.
    void enter(Cycle cycle, bool last) {
        came = cycle;
        ends = last;
        here = true;
    }
    // Cycle in which the latest step left the value register.
    Cycle left() { return !here || move_on() ? gone : UNKNOWN; }
    // Cycle in which the latest step was taken behind the stages.
    Cycle given() { return left() != UNKNOWN && emptied() ? latest : UNKNOWN; }
    // Whether all that came has left the gearboxes. Steps go into them as far as their cycles are known.
    bool drained() { return left() != UNKNOWN && emptied() && behind->flush(); }
    void room(Waits& waits) { behind->room(waits); }

  private:
    struct Moving {
        Cycle move;
        bool ends;
    };
    struct Lag {
        Cycle first, lag;
    };

    int64_t depth;
    Taker* behind;
    bool here = false, ends = false;
    Cycle entry = -1, gone = -1, latest = -1;
    std::deque<Moving> moving;
    std::deque<Lag> lags;

    bool emptied() {
        while (!moving.empty())
            if (!leave()) return false;
        return true;
    }

    // Number of the first move that is not before `cycle`, if no move waits but those known to wait.
    Cycle move_from(Cycle cycle) const {
        Cycle number = 0;
        for (auto each = lags.rbegin(); each != lags.rend(); ++each) {
            if (number && number - 1 + each->lag < cycle) break;  // the last move with this lag comes too early
            number = std::max(cycle - each->lag, each->first);
            if (number > each->first) break;
        }
        return number;
    }

    bool move_on() {
        if (!depth) {
            const Cycle taken = behind->take(came + 1, ends);
            if (taken == UNKNOWN) return false;
            latest = gone = taken;
            here = false;
            return true;
        }
        while (true) {
            const Cycle move = std::max(move_from(came + 1), entry + 1);
            while (lags.size() > 1 && lags[1].first <= move) lags.pop_front();
            if (moving.empty() || moving.front().move > move) {
                moving.push_back({move + depth, ends});
                entry = move;
                gone = move + lags[0].lag;
                here = false;
                return true;
            }
            if (!leave()) return false;
        }
    }

    // The oldest step goes into its gearbox, if it is known when.
    bool leave() {
        const auto [move, last] = moving.front();
        const Cycle lag = lags.back().lag;
        const Cycle taken = behind->take(move + lag, last);
        if (taken == UNKNOWN) return false;
        moving.pop_front();
        latest = taken;
        if (taken - move > lag) lags.push_back({move, taken - move});
        return true;
    }
};

class ResultsUnit : public Process {
  public:
    ResultsUnit(bool several, Stamps& arrived, Stamps& credit, ResultStages* feature_stages, ResultStages* raw_stages,
                std::vector<FlowLayer> layers, int64_t frames)
        : several(several), arrived(arrived), credit(credit), feature_stages(feature_stages), raw_stages(raw_stages),
          layers(std::move(layers)), frames(frames), before(feature_stages) {}

    void resume() override {
        BEGIN;
        for (frame = 0; frame < frames; frame++)
            for (layer = layers.begin(); layer != layers.end(); ++layer)
                for (window = 0; window < layer->reading.windows(); window++)
                    for (group = 1; group <= layer->groups * layer->inner; group++) {
                        while (arrived.size() <= number) {
                            raw_stages->drained();
                            if (!feature_stages->drained()) feature_stages->room(waits);
                            wait_for(arrived, number);
                            PAUSE;
                        }
                        finish = std::max(arrived[number++], finish);
                        if (several) credit.append(finish);
                        ends = group == layer->groups * layer->inner;
                        steps = ends ? layer->last_steps : layer->steps;
                        for (step = 1; step <= steps; step++) {
                            while ((left = before->left()) == UNKNOWN) {
                                before->room(waits);
                                PAUSE;
                            }
                            before = layer->raw ? raw_stages : feature_stages;
                            before->enter(step > 1 ? left : std::max(finish + 1, left), ends && step == steps);
                        }
                        finish = before->came;
                        if (!several) credit.append(finish);
                    }
        raw_stages->drained();
        while (!feature_stages->drained()) {
            feature_stages->room(waits);
            PAUSE;
        }
        END
    }

  private:
    bool several;
    Stamps &arrived, &credit;
    ResultStages *feature_stages, *raw_stages;
    std::vector<FlowLayer> layers;
    std::vector<FlowLayer>::iterator layer;
    int64_t frames, frame = 0, window = 0, group = 0, step = 0, steps = 0, number = 0;
    bool ends = false;
    ResultStages* before;
    Cycle finish = 0, left = 0;
};
