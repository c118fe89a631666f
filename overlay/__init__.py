"""From a design to something that runs: simulation overlays, Verilated models, a virtual PYNQ board."""
