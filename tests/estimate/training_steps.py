# SPDX-License-Identifier: Apache-2.0
"""A small training step at sizes that a test chooses, from shapes alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

import shardwise as sw
from shardwise import P

BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True)
class Step:
    """A stack of two-layer blocks with FSDP over ``data`` and tensor parallelism over ``model``.

    Attributes:
        tokens: of all devices.
        is_scanned: layers are trips of a scan; otherwise, each has ops of its own.
        is_recomputed: each layer is checkpointed.
        steps: of gradient descent; 0 for the gradient alone.
        are_steps_scanned: they are trips of a scan; otherwise, each has ops of its own.
    """

    layers: int = 4
    width: int = 1024
    hidden: int = 4096
    tokens: int = 16384
    data: int = 8
    model: int = 1
    dtype: Any = BF16
    is_scanned: bool = True
    is_recomputed: bool = False
    steps: int = 0
    are_steps_scanned: bool = False

    def but(self, **changes: Any) -> Step:
        """The same step with other sizes."""
        return replace(self, **changes)

    def compile(self) -> Any:
        """The compiled gradient, or steps."""
        weights = self._weights()
        x = sw.ShapeDtypeStruct((self.tokens, self.width), self.dtype)
        shardings = self._shardings()
        step = sw.jit(
            self._run,
            mesh=sw.Mesh({"data": self.data, "model": self.model}),
            in_shardings=(shardings, P("data")),
            out_shardings=shardings,
        )
        return step.lower(weights, x).compile()

    def _run(self, weights: Any, x: Any) -> Any:
        def updated(weights: Any) -> Any:
            change = lambda w, g: (w - np.asarray(0.01, self.dtype) * g).astype(self.dtype)  # noqa: E731
            return sw.tree.map(change, weights, sw.grad(self._loss)(weights, x))

        if self.steps == 0:
            return sw.grad(self._loss)(weights, x)
        if self.are_steps_scanned:
            return sw.scan(lambda weights, _: (updated(weights), None), weights, None, length=self.steps)[0]
        for _ in range(self.steps):
            weights = updated(weights)
        return weights

    def _layer(self, h: Any, weights: Any) -> Any:
        up, down = weights
        inner = np.maximum(np.dot(h, up), np.zeros((), self.dtype))
        return (h + np.dot(inner, down)).astype(self.dtype)

    def _loss(self, weights: Any, x: Any) -> Any:
        layer = sw.checkpoint(self._layer) if self.is_recomputed else self._layer
        if self.is_scanned:
            h, _ = sw.scan(lambda h, w: (layer(h, w), None), x, weights)
        else:
            h = x
            for i in range(self.layers):
                h = layer(h, (weights[0][i], weights[1][i]))
        return (h.astype(np.float32) ** 2).mean()

    def _weights(self) -> Any:
        shapes = (self.width, self.hidden), (self.hidden, self.width)
        if self.is_scanned:
            return tuple(sw.ShapeDtypeStruct((self.layers, *shape), self.dtype) for shape in shapes)
        return tuple(tuple(sw.ShapeDtypeStruct(s, self.dtype) for _ in range(self.layers)) for s in shapes)

    def _shardings(self) -> Any:
        up, down = P("data", "model"), P("model", "data")
        if self.is_scanned:
            return P(None, *up), P(None, *down)
        return (up,) * self.layers, (down,) * self.layers
