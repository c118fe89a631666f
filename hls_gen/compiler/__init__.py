"""From a network and a design to the program that the design runs. Needs numpy alone, so that a board can compile."""
