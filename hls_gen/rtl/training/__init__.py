"""The training machine as hardware: master, slaves, tree and controller (docs/explanation/training-machine.md)."""
