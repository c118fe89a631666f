// The flow model's network of processes, as record.py writes it down, run until its frames repeat (steady.py).

#include "addition.h"
#include "pool_unit.h"
#include "ports.h"
#include "sequencer.h"

namespace {

// Kinds of components, in the order of KINDS in record.py.
enum class Kind : int64_t {
    ADDED_STEPS,
    ADDITION_UNIT,
    COLLECTED_STEPS,
    FIFO,
    FORK,
    FRAME_SOURCE,
    FROM_POOL,
    GEARBOX,
    LINE_GEARBOX,
    GEARS,
    ISSUER,
    JOINED_SOURCE,
    KEPT_STEPS,
    LINE_FORMER,
    MAP_RESULTS,
    OUTLET,
    PING_PONG,
    PASS_BY,
    POOL_ISSUER,
    POOL_RESULTS,
    RAW_RESULTS,
    RESULT_STAGES,
    RESULTS_UNIT,
    ROUTER,
    SKID,
    SKID_SOURCE,
    SKIP_FIFO,
    SKIP_SOURCE,
    STREAM_REGISTER,
    TUPLE_MEMORY,
    WEIGHT_LOADER,
    WINDOW_FORMER,
    WRITER,
};

// Reads a record, and makes the components of which it tells.
class Network {
  public:
    std::vector<std::unique_ptr<Component>> components;
    std::vector<Process*> processes;
    std::vector<Stamps> stamps;
    std::vector<Issuer*> issuers;
    FrameSource* frame_source = nullptr;

    explicit Network(const int64_t* record) : at(record) {
        timing = {number(), number(), number(), number(), number(), number(),
                  number(), number(), number(), number(), number(), number()};
        static_assert(sizeof(Timing) == 12 * sizeof(Cycle), "each number of Timing is read");
        stamps.resize(size_t(number()));
        const int64_t count = number();
        while (int64_t(components.size()) < count) components.push_back(component(Kind(number())));
        for (int64_t left = number(); left; left--) {
            processes.push_back(&next_component<Process>());
            processes.back()->writes = list<Stamps*>([this] { return &next_stamps(); });
        }
    }

    Network(const Network&) = delete;

  private:
    const int64_t* at;
    Timing timing{};

    int64_t number() { return *at++; }
    bool flag() { return number() != 0; }
    Stamps& next_stamps() { return stamps[size_t(number())]; }
    Stamps* stamps_if_any() { return *at < 0 ? (at++, nullptr) : &next_stamps(); }
    template <class Role> Role& next_component() { return dynamic_cast<Role&>(*components[size_t(number())]); }
    template <class Item, class Read> std::vector<Item> list(const Read& read) {
        std::vector<Item> items;
        for (int64_t left = number(); left; left--) items.push_back(read());
        return items;
    }
    std::vector<int64_t> numbers() {
        return list<int64_t>([this] { return number(); });
    }
    Side side() { return {&next_stamps(), &next_stamps(), &next_stamps(), {}}; }
    Reading reading() { return {number(), number(), number(), flag(), flag(), numbers(), numbers(), numbers()}; }
    std::vector<Reading> readings() {
        return list<Reading>([this] { return reading(); });
    }
    std::vector<FlowLayer> layers() {
        return list<FlowLayer>([this] {
            return FlowLayer{number(), number(), number(), number(), number(), flag(), flag(), reading()};
        });
    }
    std::vector<MapSteps> map_steps() {
        return list<MapSteps>([this] { return MapSteps{number(), flag()}; });
    }

    // Makes a component of values in braces, which are read in their order; arguments of a function might not be.
    template <class Made> struct New {
        std::unique_ptr<Made> made;
        template <class... Values>
        explicit New(Values&&... values) : made(std::make_unique<Made>(std::forward<Values>(values)...)) {}
        operator std::unique_ptr<Component>() { return std::move(made); }
    };

    std::unique_ptr<Component> component(Kind kind) {
        switch (kind) {
        case Kind::ADDED_STEPS: return New<AddedSteps>{&next_component<Source>(), number()};
        case Kind::ADDITION_UNIT:
            return New<AdditionUnit>{number(), map_steps(), &next_component<AddedSteps>(), &next_component<Taker>()};
        case Kind::COLLECTED_STEPS:
            return New<CollectedSteps>{&next_component<Source>(), number(), number(), next_stamps(), next_stamps()};
        case Kind::FIFO: return New<Fifo>{timing, number(), next_stamps(), next_stamps()};
        case Kind::FORK: return New<Fork>{&next_component<Sink>(), &next_component<Sink>()};
        case Kind::FRAME_SOURCE: {
            New<FrameSource> source{timing,       number(),     number(),        number(),       flag(),
                                    next_stamps(), next_stamps(), stamps_if_any(), stamps_if_any()};
            frame_source = source.made.get();
            return source;
        }
        case Kind::FROM_POOL: return New<FromPool>{numbers(), &next_component<Taker>(), next_stamps()};
        case Kind::GEARBOX: return New<Gearbox>{number(), number(), &next_component<Sink>()};
        case Kind::LINE_GEARBOX: return New<LineGearbox>{number(), number(), &next_component<LineFormer>()};
        case Kind::GEARS: {
            const auto map = [this] { return MapGearbox{number(), &next_component<Gearbox>()}; };
            return New<Gears>{list<MapGearbox>(map)};
        }
        case Kind::ISSUER: {
            New<Issuer> issuer{timing,        number(),      number(),        number(),        next_stamps(), next_stamps(),
                               next_stamps(), next_stamps(), stamps_if_any(), stamps_if_any(), layers(),      number()};
            issuers.push_back(issuer.made.get());
            return issuer;
        }
        case Kind::JOINED_SOURCE: {
            std::vector<Source*> order;
            for (Source* source : list<Source*>([this] { return &next_component<Source>(); }))
                order.insert(order.end(), size_t(number()), source);
            return New<JoinedSource>{order};
        }
        case Kind::KEPT_STEPS: return New<KeptSteps>{map_steps(), &next_component<Sink>(), &next_component<Taker>()};
        case Kind::LINE_FORMER: {
            const auto map = [this] { return FormedLines{number(), number(), numbers(), numbers()}; };
            return New<LineFormer>{&next_component<Sink>(), list<FormedLines>(map)};
        }
        case Kind::MAP_RESULTS: return New<MapResults>{timing, numbers(), number(), number(), next_stamps()};
        case Kind::OUTLET:
            return New<Outlet>{number(), readings(), number(), next_stamps(), next_stamps(), &next_component<Taker>()};
        case Kind::PING_PONG: {
            const auto map = [this] { return MapChunks{number(), number()}; };
            return New<PingPong>{list<MapChunks>(map), next_stamps(), next_stamps()};
        }
        case Kind::PASS_BY: {
            const auto map = [this] { return PassByMap{number(), number()}; };
            return New<PassBy>{list<PassByMap>(map), &next_component<Taker>(), &next_component<Taker>(), next_stamps()};
        }
        case Kind::POOL_ISSUER:
            return New<PoolIssuer>{timing,        number(),      number(),   next_stamps(), next_stamps(),
                                   next_stamps(), next_stamps(), readings(), number()};
        case Kind::POOL_RESULTS: {
            const auto map = [this] { return SteppedMap{number(), number()}; };
            return New<PoolResults>{number(),      number(),
                                    next_stamps(), next_stamps(),
                                    &next_component<ResultStages>(), list<SteppedMap>(map), number()};
        }
        case Kind::RAW_RESULTS: return New<RawResults>{number(), next_stamps()};
        case Kind::RESULT_STAGES: return New<ResultStages>{number(), &next_component<Taker>()};
        case Kind::RESULTS_UNIT:
            return New<ResultsUnit>{flag(), next_stamps(), next_stamps(), &next_component<ResultStages>(),
                                    &next_component<ResultStages>(), layers(), number()};
        case Kind::ROUTER: {
            const auto map = [this] { return MapSink{number(), &next_component<Sink>()}; };
            return New<Router>{list<MapSink>(map)};
        }
        case Kind::SKID: return New<Skid>{&next_component<Taker>()};
        case Kind::SKID_SOURCE: return New<SkidSource>{&next_component<Source>()};
        case Kind::SKIP_FIFO: {
            const auto map = [this] { return SkippedMap{number(), flag()}; };
            return New<SkipFifo>{timing, number(), list<SkippedMap>(map), side(), side()};
        }
        case Kind::SKIP_SOURCE: return New<SkipSource>{next_component<SkipFifo>(), side()};
        case Kind::STREAM_REGISTER: return New<StreamRegister>{&next_component<Sink>()};
        case Kind::TUPLE_MEMORY: return New<TupleMemory>{timing, number(), next_stamps(), next_stamps()};
        case Kind::WEIGHT_LOADER: {
            const auto packet = [this] { return WeightPacket{number(), number(), &next_stamps(), &next_stamps()}; };
            return New<WeightLoader>{timing,       list<WeightPacket>(packet), number(), number(), next_stamps(),
                                     next_stamps(), number()};
        }
        case Kind::WINDOW_FORMER: {
            Source* source = &next_component<Source>();
            FormedWindows formed{number(), number(), flag(), numbers(), numbers()};
            return New<WindowFormer>{source, formed, number()};
        }
        case Kind::WRITER: {
            const auto map = [this] { return MapSource{number(), &next_component<Source>()}; };
            return New<Writer>{list<MapSource>(map), &next_component<Sink>(), number()};
        }
        }
        return nullptr;
    }
};

// The stamps that came with a frame, of all that is stamped.
struct Frame {
    std::vector<size_t> begin, end;
    Cycle first = std::numeric_limits<Cycle>::max(), last = std::numeric_limits<Cycle>::min();
};

// Frames that are run back to back, until they repeat; see steady.py.
class SteadyStream {
  public:
    SteadyStream(Network& network, Stamps& done, Stamps& admitted, int64_t apart)
        : network(network), done(done), admitted(admitted), apart(apart), scheduler(network.processes) {
        std::vector<bool> is_kept(network.stamps.size());
        for (const Process* process : network.processes)
            for (const Stamps* stamps : process->writes) is_kept[size_t(stamps - network.stamps.data())] = true;
        for (size_t k = 0; k < is_kept.size(); k++)
            if (is_kept[k]) kept.push_back(&network.stamps[k].at);
        kept.push_back(&network.frame_source->accepted);
    }

    // Runs at most so many frames.
    void run(int64_t count) {
        while (admitted.size() < count && !repeats()) {
            admitted.append(0);
            scheduler.go_on();
            if (done.size() == int64_t(frames.size()) + 1) note();
        }
    }

  private:
    Network& network;
    Stamps &done, &admitted;
    int64_t apart;
    Scheduler scheduler;
    std::vector<const std::vector<Cycle>*> kept;
    std::vector<Frame> frames;

    void note() {
        Frame frame;
        frame.begin = frames.empty() ? std::vector<size_t>(kept.size()) : frames.back().end;
        for (size_t k = 0; k < kept.size(); k++) {
            frame.end.push_back(kept[k]->size());
            for (size_t n = frame.begin[k]; n < frame.end[k]; n++) {
                frame.first = std::min(frame.first, (*kept[k])[n]);
                frame.last = std::max(frame.last, (*kept[k])[n]);
            }
        }
        frames.push_back(std::move(frame));
    }

    // Whether each stamp is that of the frame before, a period later.
    bool repeats(const Frame& frame, const Frame& before, Cycle period) const {
        for (size_t k = 0; k < kept.size(); k++) {
            const size_t count = frame.end[k] - frame.begin[k];
            if (before.end[k] - before.begin[k] != count) return false;
            const Cycle *here = kept[k]->data() + frame.begin[k], *there = kept[k]->data() + before.begin[k];
            for (size_t n = 0; n < count; n++)
                if (here[n] != there[n] + period) return false;
        }
        return true;
    }

    bool repeats() const {
        const int64_t latest = int64_t(frames.size()) - 1;
        if (int64_t(frames.size()) < admitted.size() || latest < 1) return false;
        const Cycle period = done[done.size() - 1] - done[done.size() - 2];
        for (int64_t under_way = 1; under_way <= latest; under_way++) {
            const Frame* frame = &frames[size_t(latest - under_way)];
            if (!repeats(frame[1], frame[0], period)) return false;
            const bool ended = frame->last + apart <= frames.back().first + period;
            Cycle before = -apart;
            if (latest > under_way) {
                before = frames[0].last;
                for (const Frame* each = frames.data(); each != frame; each++) before = std::max(before, each->last);
            }
            if (ended && before + apart <= frames.back().first) return true;
        }
        return false;
    }
};

}  // namespace

// Runs at most so many frames of a network, fewer where they repeat; `apart` as in steady.py. Gives how many were run;
// -1 without memory.
//
//   done, accepted  numbers of stamps: when frames left, when they are admitted
//   left, headers   cycles in which frames have left, and in which their headers were accepted
//   counts          what issuers had counted at the end of each frame: [issuers][frames]
//   levels          most words that were in each component at a time; 0 of one that is no store
//   stuck           of each process that can't go on the stamps that it waits for; -1 of one that is done
extern "C" __attribute__((visibility("default"))) int64_t bitloom_flow(const int64_t* record, int64_t frames,
                                                                       int64_t apart, int64_t done, int64_t admitted,
                                                                       int64_t* left, int64_t* headers, int64_t* counts,
                                                                       int64_t* levels, int64_t* stuck) {
    try {
        Network network(record);
        Stamps &leaving = network.stamps[size_t(done)], &coming = network.stamps[size_t(admitted)];
        SteadyStream(network, leaving, coming, apart).run(frames);
        std::copy(leaving.at.begin(), leaving.at.end(), left);
        const auto& accepted = network.frame_source->accepted;
        std::copy(accepted.begin(), accepted.end(), headers);
        for (size_t n = 0; n < network.issuers.size(); n++) {
            const auto& each = network.issuers[n]->counts;
            auto* out = reinterpret_cast<Count*>(counts) + n * size_t(frames);
            std::copy(each.begin(), each.end(), out);
        }
        for (size_t k = 0; k < network.components.size(); k++) {
            auto* store = dynamic_cast<Sink*>(network.components[k].get());
            levels[k] = store ? store->level() : 0;
        }
        for (size_t k = 0; k < network.processes.size(); k++) {
            const Waits& waits = network.processes[k]->waits;
            stuck[k] = waits.empty() ? -1 : waits[0].stamps - network.stamps.data();
        }
        return coming.size();
    } catch (const std::bad_alloc&) {
        return -1;
    }
}
