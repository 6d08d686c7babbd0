# SPDX-License-Identifier: Apache-2.0
"""A layer of Megatron, and what its forward pass keeps for the backward pass, from shapes alone.

Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198, section 4 and
table 2), count 16-bit activations and masks of one byte. On t devices, in multiples of s b h bytes:

    LayerNorm      input                               2             twice
    products       input 2, q k v 6/t, mixed values 2/t, input 2, up 8/t, GELU 8/t
    softmax        output 2, mask 1, dropped 2         5 a s / h t
    dropout        mask                                1             twice
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.estimate.megatron import LENGTH, RUNS, Run

KEEP = 0.9  # of dropout


@dataclass(frozen=True)
class Model:
    """The sizes of a layer: a heads, b sequences of s tokens, h wide.

    Attributes:
        layers: whose activations the first stage of the pipeline holds at once.
    """

    name: str
    h: int
    a: int
    b: int
    s: int = LENGTH
    layers: float = 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Mode:
    """How a layer is split, and what of it the backward pass computes again.

    Attributes:
        t: devices.
        splits_sequence: between the products; otherwise, all devices have all tokens there.
        again: ``"attention"``, ``"layer"`` or ``""``.
    """

    name: str
    t: int = 8
    splits_sequence: bool = False
    again: str = ""

    def __str__(self) -> str:
        return self.name

    def paper(self, model: Model) -> int:
        """Bytes that a device keeps, by table 2."""
        s, b, h, a, t = model.s, model.b, model.h, model.a, self.t
        if self.again == "layer":
            return 2 * s * b * h
        whole = t if self.splits_sequence else 1
        scores = 0 if self.again == "attention" else 5 * a * s * s * b
        return 10 * s * b * h // whole + (24 * s * b * h + scores) // t

    def statistics(self, model: Model) -> int:
        """Bytes of what the table leaves out: mean and rstd of two LayerNorms, maximum and sum of rows, in float32."""
        tokens = 0 if self.again == "layer" else 2 * model.s * model.b // (self.t if self.splits_sequence else 1)
        rows = 0 if self.again else model.a * model.s * model.b // self.t
        return 4 * 2 * (tokens + rows)

    @property
    def place(self) -> int:
        """Bytes of a device's place on the mesh: there, a mask that is drawn again begins."""
        return 4 if self.again else 0

    def cut(self, model: Model) -> int:
        """Bytes of the least from which elementwise ops make the rest: results of products, and inputs of LayerNorms.

        All else follows from these and the statistics, masks from their keys.
        """
        s, b, h, a, t = model.s, model.b, model.h, model.a, self.t
        if self.again == "layer":
            return 2 * s * b * h
        scores = 0 if self.again == "attention" else 2 * a * s * s * b
        return 4 * s * b * h // (t if self.splits_sequence else 1) + (16 * s * b * h + scores) // t


def _model(run: Run) -> Model:
    # With several parts of a stage, (p - 1) / p v more are under way (section 5, figure 1).
    more = (run.stages - 1) / (run.stages * run.parts) if run.parts > 1 else 0
    return Model(run.model, run.width, run.heads, run.micro_batch, layers=run.layers * (1 + more))


MODELS = [_model(run) for run in RUNS if run.is_selective]
MODES = [
    Mode("no parallelism", t=1), Mode("tensor parallel"), Mode("tensor and sequence parallel", splits_sequence=True),
    Mode("tensor parallel, selective", again="attention"),
    Mode("tensor and sequence parallel, selective", splits_sequence=True, again="attention"),
    Mode("tensor parallel, full", again="layer"),
]  # fmt: skip

Kernel = Callable[..., Any]  # makes one function of another and of the names of its statistics


def kernel(function: Any, *statistics: str) -> Any:
    """As Megatron's kernels do: the gradient computes all from the arguments and the statistics."""
    return sw.checkpoint(function, policy=sw.checkpoint_policies.save_only_these_names(*statistics))


def plain(function: Any, *statistics: str) -> Any:
    """Plain NumPy: each op keeps what its own gradient needs."""
    del statistics
    return function


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    wide = x.astype(np.float32)
    mean = sw.name(wide.mean(axis=-1, keepdims=True), "mean")
    centered = wide - mean
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    rstd = sw.name(1 / np.sqrt(variance + np.float32(1e-5)), "rstd")
    return (centered * rstd).astype(x.dtype) * scale + bias


def gelu(x: Any) -> Any:
    half, one = x.dtype.type(0.5), x.dtype.type(1)
    return half * x * (one + np.tanh(x.dtype.type(0.8) * (x + x.dtype.type(0.045) * x * x * x)))


def softmax(scores: Any, scale: float) -> Any:
    """Each token attends to itself and to those before it."""
    positions = np.arange(scores.shape[-1], like=scores)
    scaled = np.where(positions[:, None] >= positions, scores.astype(np.float32) * np.float32(scale), np.float32(-1e4))
    maximum = sw.name(sw.stop_gradient(scaled.max(axis=-1, keepdims=True)), "maximum")
    exponential = np.exp(scaled - maximum)
    total = sw.name(exponential.sum(axis=-1, keepdims=True), "sum")
    return (exponential / total).astype(scores.dtype)


def dropout(x: Any, key: Any) -> Any:
    mask = sw.random.bernoulli(key, np.float32(KEEP), x.shape)
    return np.where(mask, x * x.dtype.type(1 / KEEP), x.dtype.type(0))


def layer(x: Any, w: Any, keys: Any, mode: Mode, kernel: Kernel) -> Any:
    """Weights of columns are multiplied with whole tokens, those of rows make partial sums."""
    between = P(None, "tp") if mode.splits_sequence else P()
    norm = kernel(layer_norm, "mean", "rstd")

    def of_columns(subscripts: str, x: Any, w: Any) -> Any:
        def product(x: Any, w: Any) -> Any:
            return np.einsum(subscripts, x, w)

        # Of gathered tokens, that gathers them again in the backward pass.
        return (sw.checkpoint(product) if mode.splits_sequence else product)(x, w)

    def of_rows(subscripts: str, x: Any, w: Any) -> Any:
        return sw.shard(sw.shard(np.einsum(subscripts, x, w), P(unreduced=("tp",))), between)

    def attention(q: Any, k: Any, v: Any, key: Any) -> Any:
        scores = np.einsum("bqhc,bkhc->bhqk", q, k)
        dropped = dropout(kernel(softmax, "maximum", "sum")(scores, q.shape[-1] ** -0.5), key)
        return np.einsum("bhqk,bkhc->bqhc", dropped, v)

    first = sw.shard(norm(x, w["scale1"], w["bias1"]), between)
    qkv = of_columns("bsm,mihc->ibshc", first, w["qkv"]) + w["qkv_bias"][:, None, None]
    q, k, v = sw.shard(qkv, P(None, None, None, "tp"))
    attend = sw.checkpoint(attention) if mode.again == "attention" else attention
    mixed = sw.shard(attend(q, k, v, keys[0]), P(None, None, "tp"))
    middle = sw.shard(x + dropout(of_rows("bshc,hcm->bsm", mixed, w["out"]) + w["out_bias"], keys[1]), between)
    second = sw.shard(norm(middle, w["scale2"], w["bias2"]), between)
    hidden = sw.shard(of_columns("bsm,mf->bsf", second, w["up"]) + w["up_bias"], P(None, None, "tp"))
    active = kernel(gelu)(hidden)
    return sw.shard(middle + dropout(of_rows("bsf,fm->bsm", active, w["down"]) + w["down_bias"], keys[2]), between)


def _shapes(model: Model, mode: Mode, dtype: Any) -> tuple[Any, Any]:
    """Shapes and shardings of the arguments: activations, weights, and the keys of the masks."""
    m, heads, c = model.h, model.a, model.h // model.a
    table = {
        "qkv": ((m, 3, heads, c), P(None, None, "tp")), "qkv_bias": ((3, heads, c), P(None, "tp")),
        "out": ((heads, c, m), P("tp")), "out_bias": ((m,), P()),
        "up": ((m, 4 * m), P(None, "tp")), "up_bias": ((4 * m,), P("tp")),
        "down": ((4 * m, m), P("tp")), "down_bias": ((m,), P()),
        "scale1": ((m,), P()), "bias1": ((m,), P()), "scale2": ((m,), P()), "bias2": ((m,), P()),
    }  # fmt: skip
    weights = {name: sw.ShapeDtypeStruct(size, dtype) for name, (size, _) in table.items()}
    activations = sw.ShapeDtypeStruct((model.b, model.s, m), dtype)
    x = P(None, "tp") if mode.splits_sequence else P()
    specs = x, {name: spec for name, (_, spec) in table.items()}, P(), x
    return (activations, weights, sw.ShapeDtypeStruct((3, 2), np.uint32), activations), specs


def _loss(y: Any, gradient: Any) -> Any:
    """Any whose gradient needs nothing of the layer: the backward pass begins with ``gradient``."""
    return (y * gradient).sum()


def step(
    model: Model, mode: Mode, kernel: Kernel = kernel, dtype: Any = sw.bfloat16, layers: int = 0, **options: Any
) -> Any:
    """The jitted forward and backward pass of a layer, and the shapes of its arguments.

    It returns the gradients of the layer's input and weights, and the layer's result. With ``layers``, these are trips
    of a scan; weights and keys are stacked. ``options`` are those of ``jit``.
    """
    shapes, specs = _shapes(model, mode, dtype)
    if layers:
        stacked = sw.tree.map(lambda one: sw.ShapeDtypeStruct((layers, *one.shape), one.dtype), shapes[1:3])
        shapes = shapes[0], *stacked, shapes[3]
        specs = specs[0], {name: P(None, *spec) for name, spec in specs[1].items()}, P(), specs[3]

    def once(x: Any, w: Any, keys: Any) -> Any:
        return layer(x, w, keys, mode, kernel)

    whole = sw.checkpoint(once) if mode.again == "layer" else once

    def both(x: Any, w: Any, keys: Any, gradient: Any) -> Any:
        def loss(x: Any, w: Any) -> Any:
            y = sw.scan(lambda x, row: (whole(x, *row), None), x, (w, keys))[0] if layers else whole(x, w, keys)
            return _loss(y, gradient), y

        return sw.grad(loss, argnums=(0, 1), has_aux=True)(x, w)

    mesh = sw.Mesh({"tp": mode.t})
    return sw.jit(both, mesh=mesh, in_shardings=specs, out_shardings=(specs[:2], specs[0]), **options), shapes


def compiled(*args: Any, **kwargs: Any) -> sw.Program:
    """The program of a :func:`step`."""
    function, shapes = step(*args, **kwargs)
    return function.lower(*shapes).compile()


@dataclass(frozen=True)
class Kept:
    """A value of the forward pass that the backward pass reads.

    Attributes:
        name: of its variable, or of the op that makes it.
        bytes: on one device.
    """

    name: str
    bytes: int


_VIEWS = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.slice", "stablehlo.transpose")


def kept(program: sw.Program) -> list[Kept]:
    """What a layer's forward pass keeps on one device, in the order of the program: its input, and what it makes.

    The forward pass is all that the last result depends on. Constants and other arguments are there anyway.
    """
    body = program._compiled.stages["local"].main.body
    forward = set()
    open_values = [body.results[-1]]
    while open_values:
        value = open_values.pop()
        if value.number not in forward:
            forward.add(value.number)
            open_values.extend(value.defining_op.operands if value.defining_op else [])
    values = {}
    for op in body.ops:
        if op.results[0].number in forward:
            continue
        for value in op.operands:
            while value.defining_op and value.defining_op.name in _VIEWS:
                value = value.defining_op.operands[0]
            is_made = value.number in forward and value.defining_op and value.defining_op.name != "stablehlo.constant"
            if is_made or value == body.arguments[0]:
                values[value.number] = value
    return [Kept(_name(value), _bytes(value)) for _, value in sorted(values.items())]


def _name(value: Any) -> str:
    op = value.defining_op
    return str(value.name or value.location.variable or (op.name.partition(".")[2] if op else "argument"))


def _bytes(value: Any) -> int:
    return int(np.prod(value.type.shape)) * np.dtype(value.type.dtype).itemsize


def alive_at_the_loss(program: sw.Program) -> int:
    """Bytes that a run holds on one device when the forward pass is done, without arguments and the layer's result."""
    memory = program.memory()
    source, first = inspect.getsourcelines(_loss)
    before = 0
    for moment in memory.timeline():
        if moment.file == inspect.getsourcefile(_loss) and first <= moment.line < first + len(source):
            break
        before = moment.bytes
    return before - memory.argument_bytes - _bytes(program._compiled.stages["local"].main.body.results[-1])


def stacked(program: sw.Program, layers: int) -> list[int]:
    """Bytes of a layer in each stack that the forward loop of a scan of ``layers`` writes, on one device."""
    body = program._compiled.stages["local"].main.body
    forward = next(op for op in body.ops if op.name == "shardwise.scan")
    return [_bytes(value) // layers for value in forward.results if value.number != body.results[-1].number]
