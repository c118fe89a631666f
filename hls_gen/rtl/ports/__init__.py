"""Ports of an NPU: what stands at its inlets and outlets."""
