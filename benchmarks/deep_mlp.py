# SPDX-License-Identifier: Apache-2.0
"""The text of an MLP's training step of any depth, quick to write: a million ops in seconds.

text = mlp_text(layers=2, devices=8)       # two annotations: the batch of %x, the columns of the first weight
"""

from __future__ import annotations

from collections.abc import Iterator

OPS_PER_LAYER = 17
WIDTH = 1 << 20
MATRIX, VECTOR, TRUTH = (
    f"tensor<{shape}>" for shape in (f"{WIDTH}x{WIDTH}xf32", f"{WIDTH}xf32", f"{WIDTH}x{WIDTH}xi1")
)


def _forward(i: int) -> Iterator[str]:
    h = f"%h{i - 1}" if i else "%x"
    yield f"%z{i} = stablehlo.dot_general {h}, %w{i}, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}"
    yield f"%p{i} = stablehlo.broadcast_in_dim %b{i}, dims = [1] : ({VECTOR}) -> {MATRIX}"
    yield f"%s{i} = stablehlo.add %z{i}, %p{i} : {MATRIX}"
    yield f"%n{i} = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> {MATRIX}"
    yield f"%h{i} = stablehlo.maximum %s{i}, %n{i} : {MATRIX}"


def _backward(i: int, last: bool) -> Iterator[str]:
    h, g = (f"%h{i - 1}" if i else "%x"), ("%g" if last else f"%g{i + 1}")
    yield f"%m{i} = stablehlo.compare GT, %s{i}, %n{i}, FLOAT : ({MATRIX}, {MATRIX}) -> {TRUTH}"
    yield f"%d{i} = stablehlo.select %m{i}, {g}, %n{i} : {TRUTH}, {MATRIX}"
    yield f"%e{i} = stablehlo.dot_general {h}, %d{i}, contracting_dims = [0] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}"
    yield (
        f"%f{i} = stablehlo.reduce(%d{i} init: %zero) applies stablehlo.add across dimensions = [0] "
        f": ({MATRIX}, tensor<f32>) -> {VECTOR}"
    )
    yield f"%g{i} = stablehlo.dot_general %d{i}, %w{i}, contracting_dims = [1] x [1] : ({MATRIX}, {MATRIX}) -> {MATRIX}"
    for value, gradient, kind in ((f"%w{i}", f"%e{i}", MATRIX), (f"%b{i}", f"%f{i}", VECTOR)):
        name = gradient[1:]
        yield f"%r{name} = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> {kind}"
        yield f"%q{name} = stablehlo.multiply %r{name}, {gradient} : {kind}"
        yield f"%u{name} = stablehlo.subtract {value}, %q{name} : {kind}"


def mlp_text(layers: int, devices: int = 8) -> str:
    data, model = {8: (4, 2), 1048576: (65536, 16)}[devices]
    kinds = [(f"%w{i}", MATRIX) for i in range(layers)] + [(f"%b{i}", VECTOR) for i in range(layers)]
    held = {
        "%x": ' {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>}',
        "%w0": ' {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}',
    }
    arguments = [f"{name}: {kind}{held.get(name, '')}" for name, kind in [("%x", MATRIX), ("%g", MATRIX), *kinds]]
    updated = [(f"%ue{i}", MATRIX) for i in range(layers)] + [(f"%uf{i}", VECTOR) for i in range(layers)]
    lines = [
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        "%rate = stablehlo.constant dense<0.1> : tensor<f32>",
        *(line for i in range(layers) for line in _forward(i)),
        *(line for i in reversed(range(layers)) for line in _backward(i, i == layers - 1)),
        f"return {', '.join(name for name, _ in updated)} : {', '.join(kind for _, kind in updated)}",
    ]
    body = "\n    ".join(lines)
    results = ", ".join(kind for _, kind in updated)
    return (
        f'module {{\n  sdy.mesh @mesh = <["data"={data}, "model"={model}]>\n'
        f"  func.func public @main({', '.join(arguments)}) -> ({results}) {{\n    {body}\n  }}\n}}\n"
    )
