// Uses bitloom.hpp: loads a network and classifies the images in a file, a batch for each line that it is told; errors
// are printed with their class.
#include <iostream>

#include "bitloom.hpp"

int main(int, char **words) {
    try {
        bitloom::Board board(words[4], words[5], words[6], 60000);
        bitloom::Program program{std::string(words[2])};
        bitloom::Device device(board.platform(), bitloom::file(words[1]));
        const bitloom::Bytes images = bitloom::file(words[3]);
        device.load(program);
        std::cout << program.facts().name << std::endl;
        for (std::string line; std::getline(std::cin, line) && line != "end";) {
            try {
                if (line == "load") device.load(program);
                if (line == "cut") device.classify(bitloom::Bytes(images.begin(), images.end() - 1));
                for (int32_t number : device.classify(images)) std::cout << program.class_name(size_t(number)) << ' ';
                std::cout << device.predict(images).size() << ' ' << device.counters().frames << std::endl;
            } catch (const bitloom::Error &error) {
                std::cout << error.status << ' ' << error.what() << std::endl;
            } catch (const std::invalid_argument &error) {
                std::cout << error.what() << std::endl;
            }
        }
    } catch (const bitloom::Error &error) {
        std::cerr << error.status << ' ' << error.what() << std::endl;
        return 1;
    }
    return 0;
}
