"""The rule of streams: valid never waits for ready."""

from .module import Module


def check_streams(module: Module) -> None:
    """Refuse an output ``x_valid`` that depends on the input ``x_ready`` in the same cycle.

    A sender may keep ready low until it sees valid. If valid waits for ready, both wait for each other for ever, or the
    joined modules form a combinational loop. Each module by itself is legal Verilog, so Verilator says nothing.
    """
    for signal in module.scope.signals.values():
        if signal.port == "output" and signal.name.endswith("valid"):
            ready = signal.name.removesuffix("valid") + "ready"
            if ready in {source.name for source in module.inputs_of(signal.whole)}:
                module.scope.report(signal.name, f"valid must not depend on {ready} in the same cycle")
