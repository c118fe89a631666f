"""Records derivatives by PyTorch's autograd in torch_blocks.npz, which test_quantised.py reads.

    python -m tests.golden.training.torch_blocks

Needs PyTorch 2. Two layers: convolution with quantised weights, batch normalisation by the batch's own statistics, a
quantised activation, dense layer with quantised weights. What has no derivative is passed straight through in the
usual way, as ``x + (quantised(x) - x).detach()``.
"""

from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("torch_blocks.npz")
CASES = {"ternary-2": ("ternary", 3), "int8-8": ("int8", 255), "int3-4": ("int3", 15)}
"""Name -> weights, and the largest value of the activation; it is signed beside ternary weights, else unsigned."""
EPSILON = 2.0**-10
"""Of the variance, in units of the largest weight."""


def record() -> None:
    import torch
    from torch.nn import functional

    def through(x, quantised):
        return x + (quantised - x).detach()

    def weights(w, kind):
        if kind == "ternary":
            return through(w, torch.sign(w) * (w.abs() > 1 / 3))
        top = 2 ** (int(kind[3:]) - 1) - 1
        return through(w, torch.round(w * top) / top)

    def activation(z, kind, top):
        if kind == "ternary":  # -top, -top + 2 ... top, in parts of top
            z = torch.clamp(z, -1, 1)
            return through(z, torch.floor((z + 1) * top / 2 + 0.5) * 2 / top - 1)
        z = torch.clamp(z, 0, 3)
        return through(z, torch.round(z * top / 3) * 3 / top)

    records = {}
    for name, (kind, top) in CASES.items():
        rng = np.random.default_rng(7)
        arrays = {"x": rng.integers(-15, 16, (4, 2, 6, 5)), "conv": rng.uniform(-1, 1, (3, 2, 3, 2))}
        arrays |= {"gamma": rng.uniform(0.5, 1.5, 3), "beta": rng.uniform(-0.5, 0.5, 3)}
        arrays |= {"dense": rng.uniform(-1, 1, (4, 3, 4, 4)), "error": rng.integers(-64, 65, (4, 4)) / 64}
        x, conv, gamma, beta, dense, error = (torch.tensor(a, dtype=torch.float64) for a in arrays.values())
        for leaf in (conv, gamma, beta, dense):
            leaf.requires_grad_()
        scale = 1 if kind == "ternary" else 2 ** (int(kind[3:]) - 1) - 1
        unit = 1 if kind == "ternary" else scale + 1
        sums = functional.conv2d(x, weights(conv, kind) * scale)
        z = functional.batch_norm(sums, None, None, gamma, beta, training=True, eps=EPSILON * unit**2)
        out = functional.conv2d(activation(z, kind, top), weights(dense, kind))[:, :, 0, 0]
        (out * error).sum().backward()
        for key, value in arrays.items():
            records[f"{name}.{key}"] = value
        for key, leaf in (("conv", conv), ("gamma", gamma), ("beta", beta), ("dense", dense)):
            records[f"{name}.d_{key}"] = leaf.grad.numpy()
        records[f"{name}.out"] = out.detach().numpy()
    np.savez_compressed(FILE, **records)


if __name__ == "__main__":
    record()
