# SPDX-License-Identifier: Apache-2.0
"""A classifier of handwritten digits, trained by SGD on 8 virtual devices: data x tensor parallel.

The data are the 1,797 images that ship inside scikit-learn. The same training runs without a mesh, in plain NumPy
arithmetic of the same functions on one device, and must give the same weights.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import shardwise as sw
from shardwise import P

CLASSES = 10
TRAIN_COUNT = 1500  # of 1,797; the others are for testing


def predict(params, x):
    w1, b1, w2, b2 = params
    x = sw.split(x, 0, "data")
    w1 = sw.shard(w1, P(None, "model"))
    h = np.maximum(x @ w1 + b1, 0)
    return h @ w2 + b2


def loss(params, x, labels):
    logits = predict(params, x)
    logits = logits - np.max(logits, axis=1, keepdims=True)
    log_normaliser = np.log(np.sum(np.exp(logits), axis=1))
    return np.mean(log_normaliser - np.sum(logits * labels, axis=1))


def sgd_step(params, x, labels, rate):
    value, gradients = sw.value_and_grad(loss)(params, x, labels)
    return value, tuple(p - rate * g for p, g in zip(params, gradients))


def load_shuffled() -> tuple[np.ndarray, np.ndarray]:
    """Images as rows of 64 numbers in [0, 1], and their digits; shuffled: the writers come one after another."""
    digits = load_digits()
    order = np.random.default_rng(2).permutation(len(digits.target))
    return (digits.data[order] / 16).astype(np.float32), digits.target[order]


def initial_params(hidden: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return (
        (rng.standard_normal((64, hidden)) / 8).astype(np.float32),
        np.zeros(hidden, np.float32),
        (rng.standard_normal((hidden, CLASSES)) / np.sqrt(hidden)).astype(np.float32),
        np.zeros(CLASSES, np.float32),
    )


def train(mesh: sw.Mesh, hidden: int, epochs: int, batch: int, rate: float):
    images, targets = load_shuffled()
    labels = np.eye(CLASSES, dtype=np.float32)[targets]
    step = sw.jit(sgd_step, mesh=mesh)
    params = initial_params(hidden)
    order = np.random.default_rng(1)
    losses = []
    start = time.perf_counter()
    for _ in range(epochs):
        shuffled = order.permutation(TRAIN_COUNT)
        for begin in range(0, TRAIN_COUNT, batch):
            rows = shuffled[begin : begin + batch]  # the last batch of an epoch is smaller, and uneven
            value, params = step(params, images[rows], labels[rows], np.float32(rate))
        losses.append(float(value))
    seconds = time.perf_counter() - start
    logits = np.asarray(sw.jit(predict, mesh=mesh)(params, images[TRAIN_COUNT:]))
    accuracy = float(np.mean(np.argmax(logits, axis=1) == targets[TRAIN_COUNT:]))
    return [np.asarray(p) for p in params], losses, accuracy, seconds, step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.2)
    args = parser.parse_args()
    console = Console(width=110)
    mesh = sw.Mesh({"data": 4, "model": 2})
    options = (args.hidden, args.epochs, args.batch, args.rate)
    weights, losses, accuracy, seconds, step = train(mesh, *options)
    single, _, single_accuracy, single_seconds, _ = train(sw.Mesh({"data": 1, "model": 1}), *options)
    difference = max(float(np.max(np.abs(a - b))) for a, b in zip(weights, single))

    table = Table("", "8 devices (4x2)", "1 device", title="handwritten digits")
    table.add_row("accuracy", f"{accuracy:.3f}", f"{single_accuracy:.3f}")
    table.add_row("seconds", f"{seconds:.2f}", f"{single_seconds:.2f}")
    table.add_row("loss, first and last epoch", f"{losses[0]:.3f}, {losses[-1]:.3f}", "")
    table.add_row("largest difference of a weight", f"{difference:.1e}", "")
    console.print(table)
    images, targets = load_shuffled()
    x, labels = images[: args.batch], np.eye(CLASSES, dtype=np.float32)[targets[: args.batch]]
    program = step.lower(initial_params(args.hidden), x, labels, np.float32(args.rate)).compile()
    console.print(program.collectives())
    if accuracy <= 0.95:
        raise SystemExit(f"accuracy must be above 0.95, got {accuracy:.3f}")
    if difference > 1e-3:
        raise SystemExit(f"weights must agree within 1e-3, got a difference of {difference:.1e}")


if __name__ == "__main__":
    main()
