// libbitloom for C++11 and later, in this one header: objects that free what they hold, errors as exceptions.
//
//     bitloom::Board board({"/dev/uio0", "/dev/uio1", "udmabuf0"});
//     bitloom::Program program("net.program.npz");
//     bitloom::Device device(board.platform(), bitloom::file("net.manifest.json"));
//     device.load(program);
//     std::vector<int32_t> classes = device.classify(images, count);
//
// Without an operating system: define BITLOOM_NO_LINUX before it is included, and give a platform of your own.
#ifndef BITLOOM_HPP
#define BITLOOM_HPP

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bitloom.h"
#ifndef BITLOOM_NO_LINUX
#include "bitloom_linux.h"
#endif

namespace bitloom {

/// An error: one line, its class, and of BITLOOM_PACKET the code.
class Error : public std::runtime_error {
public:
    explicit Error(const bitloom_error &error)
        : std::runtime_error(error.text), status(error.status), code(error.code) {}
    const bitloom_status status;
    const uint32_t code;
};

/// Throws what a call has told.
inline void check(bitloom_status status, const bitloom_error &error) {
    if (status != BITLOOM_OK) throw Error(error);
}

using Bytes = std::vector<uint8_t>;

/// malloc and free.
inline bitloom_heap heap() {
    return {nullptr, [](void *, size_t bytes) { return std::malloc(bytes); },
            [](void *, void *memory) { std::free(memory); }};
}

#ifndef BITLOOM_NO_LINUX
/// Content of a file.
inline Bytes file(const std::string &path) {
    void *bytes;
    size_t size;
    bitloom_error error;
    check(bitloom_linux_file(path.c_str(), &bytes, &size, &error), error);
    const std::unique_ptr<void, void (*)(void *)> holder(bytes, std::free);
    const uint8_t *begin = static_cast<const uint8_t *>(bytes);
    return Bytes(begin, begin + size);
}

/// Registers and memory on Linux: bitloom_linux_options says what the three names may be.
class Board {
public:
    Board(const std::string &core, const std::string &dma, const std::string &memory, uint32_t timeout_ms = 0) {
        bitloom_linux_options options = {};
        options.core = core.c_str();
        options.dma = dma.c_str();
        options.memory = memory.c_str();
        options.timeout_ms = timeout_ms;
        bitloom_linux *board;
        bitloom_error error;
        check(bitloom_linux_open(&options, &board, &error), error);
        board_.reset(board);
    }
    const bitloom_platform &platform() const { return *bitloom_linux_platform(board_.get()); }

private:
    struct Close {
        void operator()(bitloom_linux *board) const { bitloom_linux_close(board); }
    };
    std::unique_ptr<bitloom_linux, Close> board_;
};
#endif

/// A compiled network. It may be moved while no device has it loaded, and must live as long as one has.
class Program {
public:
    explicit Program(Bytes bytes, const std::string &name = "program") : bytes_(new Bytes(std::move(bytes))) {
        const bitloom_heap memory = heap();
        bitloom_program *program;
        bitloom_error error;
        check(bitloom_program_read(&memory, bytes_->data(), bytes_->size(), name.c_str(), &program, &error), error);
        program_.reset(program);
    }
#ifndef BITLOOM_NO_LINUX
    explicit Program(const std::string &path) : Program(file(path), path) {}
#endif
    const bitloom_program_facts &facts() const { return *bitloom_program_about(program_.get()); }
    std::string class_name(size_t number) const {
        const char *name = bitloom_class_name(program_.get(), number);
        return name ? name : std::to_string(number);
    }
    /// What pixels stand for: bitloom_program_transform.
    void transform(const std::string &text) {
        bitloom_error error;
        check(bitloom_program_transform(program_.get(), text.c_str(), &error), error);
    }
    const bitloom_program *get() const { return program_.get(); }

private:
    struct Free {
        void operator()(bitloom_program *program) const { bitloom_program_free(program); }
    };
    std::unique_ptr<Bytes> bytes_; // stays where it is when the program moves
    std::unique_ptr<bitloom_program, Free> program_;
};

/// What bitloom_type an array's numbers have.
template <typename T> struct Type;
template <> struct Type<uint8_t> { static constexpr bitloom_type value = BITLOOM_UINT8; };
template <> struct Type<int8_t> { static constexpr bitloom_type value = BITLOOM_INT8; };
template <> struct Type<int16_t> { static constexpr bitloom_type value = BITLOOM_INT16; };
template <> struct Type<int32_t> { static constexpr bitloom_type value = BITLOOM_INT32; };
template <> struct Type<int64_t> { static constexpr bitloom_type value = BITLOOM_INT64; };
template <> struct Type<float> { static constexpr bitloom_type value = BITLOOM_FLOAT; };
template <> struct Type<double> { static constexpr bitloom_type value = BITLOOM_DOUBLE; };

/// A core and its DMA. For one thread at a time.
class Device {
public:
    Device(const bitloom_platform &platform, const Bytes &manifest) {
        bitloom_device *device;
        bitloom_error error;
        check(bitloom_open(&platform, manifest.data(), manifest.size(), &device, &error), error);
        device_.reset(device);
    }
    void load(const Program &program) {
        bitloom_error error;
        facts_ = nullptr;
        check(bitloom_load(device_.get(), program.get(), &error), error);
        facts_ = &program.facts();
    }
    /// Outputs of `count` images, facts.outputs each; bitloom.h says what images are.
    template <typename T> std::vector<int64_t> predict(const T *images, size_t count) {
        std::vector<int64_t> outputs(count * facts().outputs);
        bitloom_error error;
        check(bitloom_predict(device_.get(), images, Type<T>::value, count, outputs.data(), &error), error);
        return outputs;
    }
    template <typename T> std::vector<int32_t> classify(const T *images, size_t count) {
        std::vector<int32_t> classes(count);
        bitloom_error error;
        check(bitloom_classify(device_.get(), images, Type<T>::value, count, classes.data(), &error), error);
        return classes;
    }
    template <typename T> std::vector<double> scores(const T *images, size_t count) {
        std::vector<double> scores(count * facts().scores);
        bitloom_error error;
        check(bitloom_scores(device_.get(), images, Type<T>::value, count, scores.data(), &error), error);
        return scores;
    }
    /// As above, of whole images one behind the other.
    template <typename T> std::vector<int32_t> classify(const std::vector<T> &images) {
        return classify(images.data(), count(images.size()));
    }
    template <typename T> std::vector<int64_t> predict(const std::vector<T> &images) {
        return predict(images.data(), count(images.size()));
    }
    void reset() {
        bitloom_error error;
        check(bitloom_reset(device_.get(), &error), error);
    }
    bitloom_counters counters() const {
        bitloom_counters counters;
        bitloom_count(device_.get(), &counters);
        return counters;
    }
    bitloom_device *get() const { return device_.get(); }

private:
    const bitloom_program_facts &facts() const {
        if (!facts_) throw std::logic_error("a program must be loaded before images, got none");
        return *facts_;
    }
    size_t count(size_t numbers) const {
        const size_t each = facts().image_values;
        if (numbers % each)
            throw std::invalid_argument("images must have " + std::to_string(each) + " numbers each, got " +
                                        std::to_string(numbers));
        return numbers / each;
    }
    struct Close {
        void operator()(bitloom_device *device) const { bitloom_close(device); }
    };
    std::unique_ptr<bitloom_device, Close> device_;
    const bitloom_program_facts *facts_ = nullptr;
};

} // namespace bitloom

#endif
