# SPDX-License-Identifier: Apache-2.0
"""Each message begins with the name of the function that was called, whatever that function calls in turn.

A row is a wrong call of a public function: no mesh, a wrong rank, axis, dtype, tree or type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.errors.calls_of_collectives import calls_of_collectives, spelled_in_lax
from tests.errors.calls_of_lax_and_nn import calls_of_lax_and_nn
from tests.errors.calls_of_optim import calls_of_optim
from tests.errors.calls_of_random import calls_of_random
from tests.errors.derivative_rows import DERIVATIVE_ROWS

MESH = sw.Mesh({"x": 2, "y": 2})
OTHER = sw.Mesh({"z": 3})
X = np.arange(8, dtype=np.float32).reshape(4, 2)
WORDS = np.array(["a"])
A = sw.device_put(X, MESH)
KEY = sw.random.key(0)
LOGITS = np.zeros(3, np.float32)

SAME = "test_called_names.same"  # without a gradient
sw.register_custom_call(SAME, lambda x: x)

Call = Callable[[], Any]
ROWS: list[Any] = []


def jitted(function: Callable[..., Any], *args: Any) -> Any:
    return sw.jit(function, mesh=MESH)(*(args or (X,)))


def add(name: str, fault: str, call: Call) -> None:
    ROWS.append(pytest.param(name, call, id=f"{name}-{fault}"))


def traced(name: str, fault: str, function: Callable[[Any], Any]) -> None:
    """A row for a call inside of a jitted function."""
    add(name, fault, partial(jitted, function))


def with_rules(x: Any) -> Any:
    with sw.axis_rules({"a": "q"}):
        return sw.logical(x, "a b")


def beside_logits(function: Callable[..., Any], x: Any) -> Any:
    return function(x, LOGITS)


def until_it_is_large(x: Any) -> Any:
    return sw.while_loop(lambda c: c.sum() < 99, lambda c: c * 2, x).sum()


# ---- annotations and placement -------------------------------------------------------------------------------------

for placing in (sw.shard, sw.with_sharding_constraint, sw.reshard, sw.device_put):
    wrong = {"rank": P("x", None, None), "axis": P("q"), "twice": P("x", "x"), "type": 3}
    for fault, spec in wrong.items():
        traced(placing.__name__, f"{fault}-traced", lambda x, f=placing, s=spec: f(x, s))
        add(placing.__name__, fault, lambda f=placing, s=spec: f(A, s))
    traced(placing.__name__, "mesh", lambda x, f=placing: f(x, sw.NamedSharding(OTHER, P("z"))))
    traced(placing.__name__, "tree", lambda x, f=placing: f({"a": x}, {"b": P()}))
for placing in (sw.reshard, sw.device_put):
    add(placing.__name__, "dtype", lambda f=placing: f(WORDS, sw.NamedSharding(MESH, P())))
    add(placing.__name__, "no-mesh", lambda f=placing: f(X, P("x")))
for fault, how in {"rank": (5, "x"), "axis": (0, "q"), "dim": ("a", "x"), "parts": (0, 3), "type": (0, 1.5)}.items():
    traced("split", f"{fault}-traced", lambda x, how=how: sw.split(x, *how))
    add("split", fault, lambda how=how: sw.split(A, *how))
for name, annotate in {
    "split": lambda x: sw.split(x, 0, "x"),
    "replicate": sw.replicate,
    "shard": lambda x: sw.shard(x, P("x")),
}.items():
    traced(name, "trees", lambda x, f=annotate: f({"a": x}))
    add(name, "no-mesh", lambda f=annotate: sw.eval_shape(f, X))
traced("logical", "rank", lambda x: sw.logical(x, "a b c"))
traced("logical", "type", lambda x: sw.logical(x, 3))  # type: ignore[arg-type]
traced("logical", "tree", lambda x: sw.logical([x], "a b"))
traced("logical", "axis", with_rules)
add("axis_rules", "type", lambda: sw.axis_rules(3))  # type: ignore[arg-type]
add("name", "type", lambda: sw.name(X, 3))  # type: ignore[arg-type]
add("name", "empty", lambda: sw.name(X, ""))
add("propagation_barrier", "direction", lambda: sw.propagation_barrier(X, "up"))
add("sharding_group", "number", lambda: sw.sharding_group(X, -1))
traced("sharding_group", "rank", lambda x: sw.sharding_group((x, x[0])))

# ---- jit and transforms --------------------------------------------------------------------------------------------

add("jit", "type", lambda: sw.jit(3))  # type: ignore[call-overload]
add("jit", "mesh", lambda: sw.jit(np.sin, mesh=3))  # type: ignore[call-overload]
add("jit", "no-mesh", lambda: sw.jit(np.sin)(X))
add("jit", "dtype", lambda: jitted(np.sin, WORDS))
add("jit", "option", lambda: sw.jit(np.sin, strategy="q"))  # type: ignore[call-overload]
add("jit", "keyword", lambda: sw.jit(np.sin, foo=1))  # type: ignore[call-overload]
add("jit", "result", lambda: jitted(lambda x: "text"))
for fault, specs in {"tree": ({"a": P()},), "rank": P(None, None, "x"), "axis": P("q"), "spec": 3}.items():
    add("jit", fault, lambda s=specs: sw.jit(np.sin, mesh=MESH, in_shardings=s)(X))
    add("jit", f"{fault}-out", lambda s=specs: sw.jit(np.sin, mesh=MESH, out_shardings=s)(X))
add("eval_shape", "dtype", lambda: sw.eval_shape(np.sin, "a"))
add("eval_shape", "type", lambda: sw.eval_shape(3, X))  # type: ignore[arg-type]
add("eval_shape", "result", lambda: sw.eval_shape(lambda x: "text", X))
for transform in (sw.grad, sw.value_and_grad):
    add(transform.__name__, "type", lambda g=transform: g(3))
    add(transform.__name__, "dtype", lambda g=transform: jitted(g(np.sum), np.arange(3)))
    add(transform.__name__, "rank", lambda g=transform: jitted(g(np.sin)))
    add(transform.__name__, "argnums", lambda g=transform: jitted(g(np.sum, argnums=3)))
    add(transform.__name__, "argnums-type", lambda g=transform: g(np.sum, argnums="a"))
    add(transform.__name__, "loop", lambda g=transform: jitted(g(until_it_is_large)))
    add(transform.__name__, "call", lambda g=transform: jitted(g(lambda x: sw.custom_call(SAME, x, x).sum())))
    add(transform.__name__, "aux", lambda g=transform: jitted(g(np.sum, has_aux=True)))
for called, fault, call in DERIVATIVE_ROWS:
    add(called, fault, call)
add("vmap", "type", lambda: sw.vmap(3))  # type: ignore[arg-type]
add("vmap", "rank", lambda: jitted(sw.vmap(np.sin, in_axes=5)))
add("vmap", "tree", lambda: jitted(sw.vmap(np.sin, in_axes=({"a": 0},))))
traced("vmap", "sizes", lambda x: sw.vmap(np.add)(x, x[:2]))
add("checkpoint", "type", lambda: sw.checkpoint(3))  # type: ignore[call-overload]
add("checkpoint", "policy", lambda: jitted(sw.checkpoint(np.sin, policy=3)))  # type: ignore[call-overload]
add("cond", "type", lambda: sw.cond(True, 3, 4))
traced("cond", "predicate", lambda x: sw.cond(x, lambda: 1, lambda: 2))
traced("cond", "tree", lambda x: sw.cond(x[0, 0] > 0, lambda: (x,), lambda: x))
traced("cond", "dtype", lambda x: sw.cond(x[0, 0] > 0, lambda: x, lambda: x.astype(int)))
add("switch", "type", lambda: sw.switch(0, 3))  # type: ignore[arg-type]
traced("switch", "dtype", lambda x: sw.switch(x[0, 0], [lambda: 1.0]))
traced("switch", "tree", lambda x: sw.switch(x.astype(int)[0, 0], [lambda: x, lambda: (x,)]))
add("scan", "type", lambda: sw.scan(3, 0, X))  # type: ignore[arg-type]
traced("scan", "tree", lambda x: sw.scan(lambda c, row: ((c,), row), x[0], x))
traced("scan", "dtype", lambda x: sw.scan(lambda c, row: (c.astype(int), row), x[0], x))
traced("scan", "rank", lambda x: sw.scan(lambda c, row: (c[None], row), x[0], x))
traced("scan", "result", lambda x: sw.scan(lambda c, row: c, x[0], x))
add("map", "type", lambda: sw.map(3, X))  # type: ignore[arg-type]
traced("map", "rank", lambda x: sw.map(np.sin, x[0, 0]))
add("fori_loop", "type", lambda: sw.fori_loop(0, 3, 3, X))  # type: ignore[arg-type]
traced("fori_loop", "bound", lambda x: sw.fori_loop("a", 3, lambda i, c: c, x))
traced("fori_loop", "dtype", lambda x: sw.fori_loop(0, 3, lambda i, c: c.astype(int), x))
add("while_loop", "type", lambda: sw.while_loop(3, 3, X))  # type: ignore[arg-type]
traced("while_loop", "predicate", lambda x: sw.while_loop(lambda c: c, lambda c: c, x))
traced("while_loop", "tree", lambda x: sw.while_loop(lambda c: c[0, 0] < 1, lambda c: (c,), x))
add("associative_scan", "type", lambda: sw.associative_scan(3, X))  # type: ignore[arg-type]
traced("associative_scan", "rank", lambda x: sw.associative_scan(np.add, x, axis=4))

# ---- manual regions ------------------------------------------------------------------------------------------------

for name, region in {"manual": partial(sw.manual, mesh=MESH), "shard_map": partial(sw.shard_map, mesh=MESH)}.items():
    good = {"in_specs": P("x"), "out_specs": P("x")}
    add(name, "type", lambda f=region, good=good: f(3, **good))
    for fault, spec in {"axis": P("q"), "rank": P(None, None, "x"), "tree": ({"a": P()},)}.items():
        add(name, fault, lambda f=region, good=good, s=spec: jitted(f(np.sin, **{**good, "in_specs": s})))
    add(name, "out", lambda f=region, good=good: jitted(f(np.sin, **{**good, "out_specs": P("q")})))
    add(name, "shape", lambda f=region, good=good: jitted(f(np.sin, **good), X[:3]))
    add(name, "nested", lambda f=region, good=good: f(lambda x: f(np.sin, **good)(x), **good)(X))
add("manual", "axes", lambda: jitted(sw.manual(np.sin, MESH, P(), P(), axes={"q"})))
add("manual", "no-mesh", lambda: sw.manual(np.sin, None, P(), P())(X))
add("shard_map", "axes", lambda: jitted(sw.shard_map(np.sin, mesh=MESH, in_specs=P(), out_specs=P(), axis_names={"q"})))
add("shard_map", "no-mesh", lambda: sw.shard_map(np.sin, in_specs=P(), out_specs=P())(X))

LAX: Any = sw.lax


def in_region(name: str, fault: str, body: Callable[[Any], Any]) -> None:
    add(name, fault, lambda: jitted(sw.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)))


for name in ("psum", "pmean", "pmax", "pmin", "all_gather", "psum_scatter"):
    collective = getattr(LAX, name)
    add(f"lax.{name}", "outside", partial(collective, X, "x"))
    in_region(f"lax.{name}", "axis", partial(collective, axis_name="q"))
    in_region(f"lax.{name}", "groups", partial(collective, axis_name="x", axis_index_groups=[[0], [0]]))
    in_region(f"lax.{name}", "type", lambda x, f=collective: f(WORDS, "x"))
in_region("lax.psum", "no-axes", lambda x: LAX.psum(x, ()))
in_region("lax.psum", "no-name", lambda x: LAX.psum(x, None))
in_region("lax.psum", "no-lists", lambda x: LAX.psum(x, "x", axis_index_groups=[0, 1]))
in_region("lax.ppermute", "no-pairs", lambda x: LAX.ppermute(x, "x", [0, 1]))
in_region("lax.ppermute", "triples", lambda x: LAX.ppermute(x, "x", [(0, 1, 2)]))
in_region("lax.all_gather", "dim", lambda x: LAX.all_gather(x, "x", axis=5))
in_region("lax.psum_scatter", "size", lambda x: LAX.psum_scatter(x, ("x", "y")))
in_region("lax.all_to_all", "axis", lambda x: LAX.all_to_all(x, "q", 0, 1))
in_region("lax.all_to_all", "size", lambda x: LAX.all_to_all(x, ("x", "y"), 0, 1))
in_region("lax.ppermute", "axis", lambda x: LAX.ppermute(x, "q", []))
in_region("lax.ppermute", "twice", lambda x: LAX.ppermute(x, "x", [(0, 1), (0, 0)]))
in_region("lax.ppermute", "position", lambda x: LAX.ppermute(x, "x", [(0, 2)]))
in_region("lax.pshuffle", "permutation", lambda x: LAX.pshuffle(x, "x", [0, 0]))
in_region("lax.axis_index", "axis", lambda x: x + LAX.axis_index("q"))
in_region("lax.axis_size", "axis", lambda x: x + LAX.axis_size(("x", "x")))

for name, fault, _, body in calls_of_collectives():
    in_region(name, fault, body)
for name, fault, call in spelled_in_lax():
    add(name, fault, call)

# ---- neural networks -----------------------------------------------------------------------------------------------

NN = sw.nn
WITH_LABELS = NN.softmax_cross_entropy_with_integer_labels
NOT_ELEMENTWISE = {"batch_norm", "dot_product_attention", "dropout", "identity", "one_hot", "softmax_cross_entropy"}
NOT_ELEMENTWISE |= {"softmax_cross_entropy_with_integer_labels", "sigmoid_binary_cross_entropy", "cosine_similarity"}
NOT_ELEMENTWISE |= {"avg_pool", "max_pool", "min_pool", "initializers"}
for name in sorted({*NN.__all__} - NOT_ELEMENTWISE - {"swish", "hard_swish"}):
    add(f"nn.{name}", "dtype", partial(getattr(NN, name), WORDS))
for name in ("softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"):
    add(f"nn.{name}", "axis", partial(getattr(NN, name), X, axis=2))
    traced(f"nn.{name}", "axis-traced", partial(getattr(NN, name), axis=2))
    add(f"nn.{name}", "where", partial(getattr(NN, name), X, where=X))
    add(f"nn.{name}", "where-shape", partial(getattr(NN, name), X, where=X[:3] > 0))
for name in ("layer_norm", "rms_norm"):
    add(f"nn.{name}", "axis", partial(getattr(NN, name), X, axis=2))
    traced(f"nn.{name}", "shape", partial(beside_logits, getattr(NN, name)))
for name in ("softmax_cross_entropy", "sigmoid_binary_cross_entropy", "cosine_similarity"):
    add(f"nn.{name}", "dtype", partial(getattr(NN, name), WORDS, X))
    traced(f"nn.{name}", "shape", partial(beside_logits, getattr(NN, name)))
for name in ("squared_error", "l2_loss", "huber_loss", "log_cosh"):
    traced(f"nn.{name}", "shape", partial(beside_logits, getattr(NN, name)))
add("nn.softmax_cross_entropy", "axis", lambda: NN.softmax_cross_entropy(X, X, axis=2))
add("nn.cosine_similarity", "axis", lambda: NN.cosine_similarity(X, X, axis=2))
add("nn.softmax_cross_entropy_with_integer_labels", "dtype", lambda: WITH_LABELS(X, X[:, 0]))
add("nn.softmax_cross_entropy_with_integer_labels", "shape", lambda: WITH_LABELS(X, np.arange(3)))
add("nn.logsumexp", "factors", lambda: NN.logsumexp(X, b=LOGITS))
add("nn.standardize", "algorithm", lambda: NN.standardize(X, algorithm="q"))
traced("nn.glu", "size", lambda x: NN.glu(x[:3], axis=0))
traced("nn.glu", "axis", lambda x: NN.glu(x, axis=2))
add("nn.one_hot", "dtype", lambda: NN.one_hot(X, 3))
add("nn.one_hot", "axis", lambda: NN.one_hot(np.arange(3), 3, axis=5))
add("nn.one_hot", "size", lambda: NN.one_hot(np.arange(3), -1))
add("nn.one_hot", "type", lambda: NN.one_hot(np.arange(3), 3, dtype="word"))
add("nn.batch_norm", "shape", lambda: NN.batch_norm(X, LOGITS, LOGITS, use_running_average=True))
add("nn.batch_norm", "axis", lambda: NN.batch_norm(X, LOGITS, LOGITS, use_running_average=True, axis=2))
add("nn.dropout", "rate", lambda: NN.dropout(X, KEY, 2))
add("nn.dropout", "key", lambda: NN.dropout(X, 3, 0.5))
add("nn.dropout", "dim", lambda: NN.dropout(X, KEY, 0.5, broadcast_dims=(2,)))
add("nn.dot_product_attention", "shape", lambda: NN.dot_product_attention(X, X[:3], X[:3]))
add("nn.dot_product_attention", "dtype", lambda: NN.dot_product_attention(X, X, X.astype(int)))
traced("nn.dot_product_attention", "mask", lambda x: NN.dot_product_attention(x[None], x[None], x[None], mask=x))
for name in ("max_pool", "min_pool", "avg_pool"):
    add(f"nn.{name}", "dtype", partial(getattr(NN, name), WORDS, (2,)))
    add(f"nn.{name}", "rank", partial(getattr(NN, name), X, (2, 2)))
    traced(f"nn.{name}", "strides", partial(getattr(NN, name), window_shape=(2,), strides=0))
    traced(f"nn.{name}", "padding", partial(getattr(NN, name), window_shape=(2,), padding="q"))
    traced(f"nn.{name}", "size", partial(getattr(NN, name), window_shape=5))
INITIALIZERS = sw.nn.initializers
CONSTANTS = {"zeros": INITIALIZERS.zeros, "ones": INITIALIZERS.ones, "constant": INITIALIZERS.constant(1.0)}
MADE = {"variance_scaling": INITIALIZERS.variance_scaling(1.0, "fan_in", "normal")}
ALIASES = {name for name in INITIALIZERS.__all__ if name.startswith(("xavier", "kaiming"))}
for name in sorted({*INITIALIZERS.__all__} - {*CONSTANTS, *MADE, *ALIASES}):
    MADE[name] = getattr(INITIALIZERS, name)()
for name, init in {**CONSTANTS, **MADE}.items():
    add(f"nn.initializers.{name}", "shape", partial(init, KEY, (-1, 2)))
    add(f"nn.initializers.{name}", "dtype", partial(init, KEY, (2, 2), "word"))
for name, init in MADE.items():
    add(f"nn.initializers.{name}", "key", partial(init, X, (3, 2, 2)))
add("nn.initializers.variance_scaling", "mode", lambda: INITIALIZERS.variance_scaling(1.0, "q", "normal"))
add("nn.initializers.constant", "value", lambda: INITIALIZERS.constant(X)(KEY, (3,)))
IMAGE, KERNEL = np.zeros((2, 3, 8, 6), np.float32), np.zeros((4, 3, 2, 2), np.float32)
STEPS = (1, 1)


def on_both(name: str, fault: str, function: Callable[[Any], Any], x: Any = X) -> None:
    """Rows for a call on a NumPy array and on a traced one."""
    add(f"lax.{name}", fault, partial(function, x))
    add(f"lax.{name}", f"{fault}-traced", partial(jitted, function, x))


for fault, given in {
    "strides": {"window_strides": (1,)},
    "stride": {"window_strides": (0, 1)},
    "stride-type": {"window_strides": (1.5, 1)},
    "stride-list": {"window_strides": 1},
    "padding": {"padding": "SAM"},
    "padding-type": {"padding": 3},
    "pairs": {"padding": [(1, 1)]},
    "pair": {"padding": [(1, 1, 1), (0, 0)]},
    "pair-type": {"padding": [("a", 1), (0, 0)]},
    "lhs_dilation": {"lhs_dilation": (0, 1)},
    "rhs_dilation": {"rhs_dilation": (1,)},
    "dilated-same": {"lhs_dilation": (2, 1)},
    "numbers-type": {"dimension_numbers": 3},
    "numbers-words": {"dimension_numbers": ("NCHW", "OIHW")},
    "numbers-short": {"dimension_numbers": ("NCH", "OIH", "NCH")},
    "numbers-letters": {"dimension_numbers": ("NCHW", "OIHX", "NCHW")},
    "numbers-twice": {"dimension_numbers": ("NCHH", "OIHW", "NCHW")},
    "numbers-dims": {"dimension_numbers": LAX.ConvDimensionNumbers((0, 0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3))},
    "features": {"feature_group_count": 3},
    "both-groups": {"feature_group_count": 2, "batch_group_count": 2},
    "batch": {"batch_group_count": 3},
    "groups-type": {"feature_group_count": "a"},
    "precision": {"precision": "q"},
    "element-type": {"preferred_element_type": "foo"},
}.items():
    options: dict[str, Any] = {"window_strides": STEPS, "padding": "SAME", **given}
    on_both("conv_general_dilated", fault, lambda x, o=options: LAX.conv_general_dilated(x, KERNEL, **o), IMAGE)
for name, convolve in {
    "conv_general_dilated": lambda x, k: LAX.conv_general_dilated(x, k, STEPS, "SAME"),
    "conv": lambda x, k: LAX.conv(x, k, STEPS, "SAME"),
    "conv_with_general_padding": lambda x, k: LAX.conv_with_general_padding(x, k, STEPS, "SAME", None, None),
    "conv_transpose": lambda x, k: LAX.conv_transpose(x, k, STEPS, "SAME"),
}.items():
    on_both(name, "dtype", lambda x, f=convolve: f(x, KERNEL.astype(int)), IMAGE)
    on_both(name, "rank", lambda x, f=convolve: f(x, KERNEL[0]), IMAGE)
    on_both(name, "sizes", lambda x, f=convolve: f(x, KERNEL[:, :2]), IMAGE)
    on_both(name, "no-taps", lambda x, f=convolve: f(x, np.zeros((0, 0, 3, 3), np.float32)), np.zeros((2, 1, 1, 3)))
    add(f"lax.{name}", "type", partial(convolve, WORDS, KERNEL))
on_both("conv", "strides", lambda x: LAX.conv(x, KERNEL, (1,), "SAME"), IMAGE)
on_both("conv_transpose", "strides", lambda x: LAX.conv_transpose(x, KERNEL, (1,), "SAME"), IMAGE)
on_both("conv_transpose", "padding", lambda x: LAX.conv_transpose(x, KERNEL, STEPS, "q"), IMAGE)
for fault, padding in {"consistent": "SAME_LOWER", "consistent-pairs": [(1, 1)]}.items():
    on_both(
        "conv_transpose",
        fault,
        lambda x, p=padding: LAX.conv_transpose(x, KERNEL, STEPS, p, None, ("NCHW", "OIHW", "NCHW"),
                                                use_consistent_padding=True),
        IMAGE,
    )  # fmt: skip
on_both("conv_transpose", "many-dims", lambda x: LAX.conv_transpose(x, x, (1,) * 4, "SAME"), np.zeros((1,) * 6))
for fault, patches in {
    "shape": lambda x: LAX.conv_general_dilated_patches(x, (2,), STEPS, "SAME"),
    "padding": lambda x: LAX.conv_general_dilated_patches(x, (2, 2), STEPS, "q"),
    "size": lambda x: LAX.conv_general_dilated_patches(x, (0, 2), STEPS, "SAME"),
}.items():
    on_both("conv_general_dilated_patches", fault, patches, IMAGE)
on_both("conv_general_dilated_patches", "rank", lambda x: LAX.conv_general_dilated_patches(x, (), (), ()), X[0])
add("lax.conv_dimension_numbers", "rank", lambda: LAX.conv_dimension_numbers((1, 2, 3), (1, 2), None))
add("lax.conv_dimension_numbers", "words", lambda: LAX.conv_dimension_numbers((1, 2), (1, 2), ("NC", "NI", "NC")))
add("lax.padtype_to_pads", "name", lambda: LAX.padtype_to_pads([8], [3], [1], "q"))
add("lax.padtype_to_pads", "type", lambda: LAX.padtype_to_pads([8], [3], [1], 3))
add("lax.padtype_to_pads", "lengths", lambda: LAX.padtype_to_pads([8], [3, 3], [1], "SAME"))
for fault, (start, combine, sizes) in {
    "start-tree": ((0, 0), np.add, (2, 1)),
    "start-rank": (np.zeros(20, np.float32), np.add, (2, 1)),
    "start-dtype": (1j, np.add, (2, 1)),
    "function": (0, 3, (2, 1)),
    "result-dtype": (0, lambda a, b: a.astype(int), (2, 1)),
    "result-tree": (0, lambda a, b: (a, b), (2, 1)),
    "result-rank": (0, lambda a, b: a[None], (2, 1)),
    "not-elementwise": (0, lambda a, b: np.sum(np.stack([a, b])), (2, 1)),
    "size": (0, np.add, (0, 1)),
    "sizes": (0, np.add, (2,)),
}.items():
    on_both("reduce_window", fault, lambda x, s=start, f=combine, w=sizes: LAX.reduce_window(x, s, f, w))
    if not fault.startswith("size"):
        on_both("reduce", fault, lambda x, s=start, f=combine: LAX.reduce(x, s, f, (0,)))
on_both("reduce_window", "integers", lambda x: LAX.reduce_window(x, 0.5, np.add, (1, 1)), X.astype(int))
on_both("reduce_window", "range", lambda x: LAX.reduce_window(x, 1000, np.add, (1, 1)), X.astype(np.int8))
on_both("reduce_window", "dilation", lambda x: LAX.reduce_window(x, 0, np.add, (1, 1), base_dilation=(0, 1)))
add("lax.reduce_window", "empty", lambda: LAX.reduce_window((), (), np.add, ()))
add("lax.reduce_window", "shapes", lambda: LAX.reduce_window((X, X[:1]), (0, 0), lambda a, b: a, (1, 1)))
for fault, dims in {"axis": (5,), "twice": (0, 0), "type": ("a",), "list": 0}.items():
    on_both("reduce", fault, lambda x, d=dims: LAX.reduce(x, 0, np.add, d))
for fault, (source, select) in {
    "windows": (X[:1], np.greater_equal),
    "dtype": (X[:2].astype(int), np.greater_equal),
    "select": (X[:2], np.add),
    "function": (X[:2], 3),
}.items():
    on_both(
        "select_and_scatter_add",
        fault,
        lambda x, s=source, f=select: LAX.select_and_scatter_add(s, x, f, (2, 1), (2, 1), "VALID"),
    )
for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
    cumulative = getattr(LAX, name)
    on_both(name, "axis", lambda x, f=cumulative: f(x, 5))
    on_both(name, "axis-type", lambda x, f=cumulative: f(x, 1.5))
    on_both(name, "dtype", lambda x, f=cumulative: f(x > 0))
on_both("reduce_precision", "dtype", lambda x: LAX.reduce_precision(x, 5, 10), np.arange(3))
NO_DIMS: Any = ((), ())
for fault, numbers in {"type": 1, "pairs": (((0,),), NO_DIMS), "sizes": (((0,), (1,)), NO_DIMS),
                       "dim": (((5,), (0,)), NO_DIMS), "twice": (((0,), (0,)), ((0,), (0,)))}.items():  # fmt: skip
    on_both("dot_general", fault, lambda x, n=numbers: LAX.dot_general(x, X, n))
on_both("dot_general", "dtypes", lambda x: LAX.dot_general(x, X.astype(int), (((0,), (0,)), NO_DIMS)))
on_both("dot_general", "element-type", lambda x: LAX.dot_general(x, X, (((0,), (0,)), NO_DIMS), None, "foo"))
for fault, (matrices, sizes) in {"rank": (X, [4]), "sizes": (X[None].T, [4]), "groups": (X.T[None], [1, 1]),
                                 "dtype": (X.T[None], [1.5])}.items():  # fmt: skip
    on_both("ragged_dot", fault, lambda x, m=matrices, n=sizes: LAX.ragged_dot(x, m, np.array(n)))
for fault, (kind, lengths) in {"type": ("q", (5,)), "list": ("FFT", 5), "lengths": ("RFFT", (4,)),
                               "size": ("FFT", (0,)), "count": ("FFT", ())}.items():  # fmt: skip
    on_both("fft", fault, lambda x, k=kind, n=lengths: LAX.fft(x, k, n))
on_both("fft", "dtype", lambda x: LAX.fft(x, "RFFT", (3,)), np.zeros(3, complex))
for fault, config in {
    "type": 3,
    "triples": [(1, 1)] * 2,
    "short": [(-9, 0, 0)] * 2,
    "inside": [(0, 0, -1)] * 2,
}.items():
    on_both("pad", fault, lambda x, c=config: LAX.pad(x, 0, c))
on_both("pad", "dtype", lambda x: LAX.pad(x, X[0], [(0, 0, 0)] * 2))

INTEGERS = np.arange(4)
ROWS_AT = LAX.GatherDimensionNumbers((1,), (0,), (0,))
INTO_ROWS = LAX.ScatterDimensionNumbers((1,), (0,), (0,))

for name in ("erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i1e", "logistic", "rsqrt", "is_finite"):
    add(f"lax.{name}", "dtype", partial(getattr(LAX, name), INTEGERS))
    add(f"lax.{name}", "type", partial(getattr(LAX, name), WORDS))
for name in ("population_count", "clz"):
    add(f"lax.{name}", "dtype", partial(getattr(LAX, name), X))
for name in ("rem", "zeta", "polygamma", "shift_right_logical"):
    add(f"lax.{name}", "dtypes", partial(getattr(LAX, name), X, INTEGERS))
    add(f"lax.{name}", "shapes", partial(getattr(LAX, name), X, X[:3]))
add("lax.clamp", "dtypes", lambda: LAX.clamp(INTEGERS, X, 1))
add("lax.clamp", "shapes", lambda: LAX.clamp(X[:1], X, X))
add("lax.bitcast_convert_type", "shape", lambda: LAX.bitcast_convert_type(X, np.complex128))
add("lax.clamp", "float", lambda: LAX.clamp(0.5, INTEGERS, 3))
add("lax.rem", "float", lambda: LAX.rem(INTEGERS, 2.5))
add("lax.rem", "nan", lambda: LAX.rem(INTEGERS, float("nan")))
add("lax.top_k", "list", lambda: LAX.top_k([1, 5, 3], 2))
add("lax.sort", "list", lambda: LAX.sort([3, 1, 2]))
add("lax.reduce_precision", "many-bits", lambda: LAX.reduce_precision(X, 2**40, 1))
add("lax.reduce_precision", "bits", lambda: LAX.reduce_precision(X, 0, 1))
add("lax.top_k", "k", lambda: LAX.top_k(X, 3))
traced("lax.top_k", "axis", lambda x: LAX.top_k(x, 1, axis=2))
add("lax.top_k", "dtype", lambda: LAX.top_k(X.astype(complex), 1))
add("lax.sort", "shapes", lambda: LAX.sort((X, X[:1])))
add("lax.sort", "keys", lambda: LAX.sort((X, X), num_keys=3))
add("lax.sort_key_val", "shapes", lambda: LAX.sort_key_val(X, X[0]))
add("lax.argsort", "dim", lambda: LAX.argsort(X, dimension=2))
add("lax.dynamic_slice", "starts", lambda: LAX.dynamic_slice(X, (0,), (1, 1)))
add("lax.dynamic_slice", "sizes", lambda: LAX.dynamic_slice(X, (0, 0), (5, 1)))
traced("lax.dynamic_slice", "dtype", lambda x: LAX.dynamic_slice(x, (0.5, 0), (1, 1)))
add("lax.dynamic_update_slice", "dtypes", lambda: LAX.dynamic_update_slice(X, INTEGERS[None, :1], (0, 0)))
add("lax.dynamic_update_slice", "shape", lambda: LAX.dynamic_update_slice(X, X[0], (0, 0)))
add("lax.dynamic_slice_in_dim", "axis", lambda: LAX.dynamic_slice_in_dim(X, 0, 1, axis=2))
add("lax.dynamic_index_in_dim", "axis", lambda: LAX.dynamic_index_in_dim(X, 0, axis=2))
add("lax.dynamic_update_slice_in_dim", "axis", lambda: LAX.dynamic_update_slice_in_dim(X, X, 0, 2))
add("lax.dynamic_update_index_in_dim", "axis", lambda: LAX.dynamic_update_index_in_dim(X, X, 0, 2))
add("lax.gather", "indices", lambda: LAX.gather(X, INTEGERS, ROWS_AT, (1, 2)))
add("lax.gather", "dtype", lambda: LAX.gather(X, X[:, :1], ROWS_AT, (1, 2)))
add("lax.gather", "sizes", lambda: LAX.gather(X, INTEGERS[:, None], ROWS_AT, (1, 5)))
for name in ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
    add(f"lax.{name}", "dtypes", partial(getattr(LAX, name), X, INTEGERS[:, None], INTEGERS[:, None], INTO_ROWS))
    add(f"lax.{name}", "indices", partial(getattr(LAX, name), X, X, X, INTO_ROWS))

# ---- meshes, shardings and shapes ----------------------------------------------------------------------------------

add("set_mesh", "type", lambda: sw.set_mesh(3))  # type: ignore[arg-type]
add("make_mesh", "names", lambda: sw.make_mesh((2,), ("a", "b")))
add("make_mesh", "type", lambda: sw.make_mesh("a", "b"))  # type: ignore[arg-type]
add("make_mesh", "size", lambda: sw.make_mesh((0,), ("a",)))
add("Mesh", "type", lambda: sw.Mesh(3))  # type: ignore[arg-type]
add("Mesh", "size", lambda: sw.Mesh({"a": 0}))
add("Mesh", "ids", lambda: sw.Mesh({"a": 2}, [0, 0]))
add("NamedSharding", "type", lambda: sw.NamedSharding(3, P()))  # type: ignore[arg-type]
add("NamedSharding", "axis", lambda: sw.NamedSharding(MESH, P("q")))
add("NamedSharding", "twice", lambda: sw.NamedSharding(MESH, P("x", "x")))
add("NamedSharding", "spec", lambda: sw.NamedSharding(MESH, 3))  # type: ignore[arg-type]
add("ShapeDtypeStruct", "dtype", lambda: sw.ShapeDtypeStruct((3,), "foo"))
add("P", "type", lambda: P(3))  # type: ignore[arg-type]
add("open", "type", lambda: sw.open(3))  # type: ignore[arg-type]
add("priority", "type", lambda: sw.priority(3, "a"))  # type: ignore[arg-type]
add("sub", "type", lambda: sw.sub(3, 1, 2))  # type: ignore[arg-type]
add("parse", "type", lambda: sw.parse(3))  # type: ignore[arg-type]
add("sharding_rule", "type", lambda: sw.sharding_rule(3))  # type: ignore[arg-type]
traced("custom_call", "type", lambda x: sw.custom_call(3, [x], []))  # type: ignore[arg-type]
add("register_custom_call", "type", lambda: sw.register_custom_call(3, np.sin))  # type: ignore[arg-type]
add("register_pytree_node", "type", lambda: sw.register_pytree_node(3, 3, 3))  # type: ignore[arg-type]
add("register_pytree_node_class", "type", lambda: sw.register_pytree_node_class(3))
add("register_dataclass", "type", lambda: sw.register_dataclass(3))  # type: ignore[arg-type]

# ---- random numbers, tests and PyTorch's names ---------------------------------------------------------------------

for name, fault, call in [*calls_of_random(), *calls_of_optim(), *calls_of_lax_and_nn()]:
    add(name, fault, call)
add("assert_collectives", "type", lambda: sw.testing.assert_collectives(3))
add("assert_work", "type", lambda: sw.testing.assert_work(3, ratio_max=1))
add("assert_time", "type", lambda: sw.testing.assert_time(3, seconds_max=1))
add("assert_memory", "type", lambda: sw.testing.assert_memory(3, bytes_max=1))
add("assert_matches_unpartitioned", "type", lambda: sw.testing.assert_matches_unpartitioned(3))  # type: ignore[arg-type]
add("assert_matches_unpartitioned", "no-mesh", lambda: sw.testing.assert_matches_unpartitioned(np.sin, X))
add("assert_matches_unpartitioned", "dtype", lambda: sw.testing.assert_matches_unpartitioned(np.sin, WORDS, mesh=MESH))
add("visualize_array_sharding", "type", lambda: sw.debug.visualize_array_sharding(3))
torch = sw.dtensor
add("distribute_tensor", "reduction", lambda: torch.distribute_tensor(X, MESH, [torch.Partial(), torch.Partial()]))
add("distribute_tensor", "count", lambda: torch.distribute_tensor(X, MESH, [torch.Shard(0)]))
add("distribute_tensor", "rank", lambda: torch.distribute_tensor(X, MESH, [torch.Shard(5), torch.Replicate()]))
add("distribute_tensor", "type", lambda: torch.distribute_tensor(X, MESH, 3))  # type: ignore[arg-type]
add("distribute_tensor", "dtype", lambda: torch.distribute_tensor(WORDS, MESH, [torch.Replicate()] * 2))
add("redistribute", "rank", lambda: torch.redistribute(A, MESH, [torch.Shard(5), torch.Replicate()]))
add("redistribute", "type", lambda: torch.redistribute(A, MESH, 3))  # type: ignore[arg-type]
add("placements", "type", lambda: torch.placements(3))  # type: ignore[arg-type]
add("init_device_mesh", "type", lambda: torch.init_device_mesh("cpu", 3))  # type: ignore[arg-type]
add("init_device_mesh", "names", lambda: torch.init_device_mesh("cpu", (2,), mesh_dim_names=("a", "b")))

SHARDED = sw.NamedSharding(MESH, P("x"))
for fault, given in {"shape": ("a", SHARDED, len), "type": ((4,), 3, len), "function": ((4,), SHARDED, 3)}.items():
    add("make_array_from_callback", fault, lambda given=given: sw.make_array_from_callback(*given))
for fault, given in {"shape": ("a", SHARDED, [X]), "type": ((4,), 3, [X]), "arrays": ((4,), SHARDED, 3)}.items():
    add(
        "make_array_from_single_device_arrays",
        fault,
        lambda given=given: sw.make_array_from_single_device_arrays(*given),
    )

# ---- programs ------------------------------------------------------------------------------------------------------

PROGRAM = sw.jit(np.sin, mesh=MESH).lower(X).compile()


def with_halves(x: Any) -> Any:
    halves = x[:2]
    total = halves.sum()
    halves = x[2:]
    return total + halves.sum()


HALVES = sw.jit(with_halves, mesh=MESH).lower(X).compile()


def pinned(at: str, op: Any) -> Any:
    choices = sw.Choices(ops={at: replace(op, results=('[{"x"}]',))})
    return sw.jit(np.sin, mesh=MESH, choices=choices)(X)


add("call", "dtype", lambda: PROGRAM(X.astype(int)))
add("call", "shape", lambda: PROGRAM(X[:2]))
add("call", "sharding", lambda: PROGRAM(sw.device_put(X, sw.NamedSharding(MESH, P("x")))))
add("call", "tree", lambda: PROGRAM([X]))
add("why", "type", lambda: PROGRAM.why(3))  # type: ignore[arg-type]
for fault, spec in {"rank": P("x", None, None), "axis": P("q"), "type": 3}.items():
    add("why", f"instead-{fault}", lambda s=spec: PROGRAM.why("x", instead=s))
add("why", "instead-several", lambda: HALVES.why("halves", instead=P("x")))
for fault, op in PROGRAM.choices.ops.items():
    add("jit", f"choices-{fault}", lambda at=fault, op=op: pinned(at, op))
for fault, given in {
    "name": "q",
    "type": 3,
    "dict": {"a": 1},
    "base": {"format": "q"},
    "value": {"a": float("nan")},
}.items():
    add("hardware.load", fault, lambda given=given: sw.hardware.load(given))  # type: ignore[arg-type]
    add("jit", f"hardware-{fault}", lambda given=given: sw.jit(np.sin, hardware=given))
    add("estimate", f"hardware-{fault}", lambda given=given: PROGRAM.estimate(given))
add("as_text", "kind", lambda: PROGRAM.as_text("q"))
add("memory", "type", lambda: PROGRAM.memory(virtual=3))  # type: ignore[arg-type]
add("run", "type", lambda: PROGRAM.run(X, faithful=3))  # type: ignore[arg-type]
add("to_source", "target", lambda: PROGRAM.to_source("q"))
add("compile", "mesh", lambda: sw.jit(np.sin, mesh=MESH).lower(X).compile(3))  # type: ignore[arg-type]

# ---- checkpoints ----------------------------------------------------------------------------------------------------

FUNCTIONS_OF_PATHS: dict[str, Call] = {
    "save": lambda path="": sw.save(path, {"w": X}),
    "load": lambda path="": sw.load(path),
    "latest": lambda path="": sw.latest(path),
    "save_safetensors": lambda path="": sw.save_safetensors(path, {"w": X}),
    "load_safetensors": lambda path="": sw.load_safetensors(path),
    "load_orbax": lambda path="": sw.load_orbax(path),
}
for name, call in FUNCTIONS_OF_PATHS.items():
    for fault, path in {"type": 3, "empty": "", "bucket": "s3://bucket"}.items():
        add(name, fault, partial(call, path))
    if name.startswith("load"):
        add(name, "missing", partial(call, "/none"))
add("save", "leaf", lambda: sw.save("/none", {"w": WORDS}))
add("save", "key", lambda: sw.save("/none", {frozenset(): X}))
add("save", "step", lambda: sw.save("/none", X, step=-1))
add("save", "keep", lambda: sw.save("/none", X, keep=0))
add("save", "option", lambda: sw.save("/none", X, async_=3))  # type: ignore[arg-type]
add("load", "mesh", lambda: sw.load("/none", mesh=3))
add("load", "step", lambda: sw.load("/none", step=-1))
add("save_safetensors", "leaf", lambda: sw.save_safetensors("/none", {"w": 3}))
traced("save", "traced", lambda x: sw.save("/none", x))
traced("load", "traced", lambda x: sw.load("/none"))

# Any argument is good, or there is none.
TAKE_ANYTHING = {"at", "block_until_ready", "device_get", "get_mesh", "stop_gradient", "wait_until_saved"}
IN_JAX = {"annotate_jax", "from_jax"}  # tests/interop


@pytest.mark.parametrize(("name", "call"), ROWS)
def test_a_message_begins_with_the_name_of_the_called_function(name: str, call: Call) -> None:
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
        call()
    text = str(caught.value)
    assert text.startswith((f"{name}: ", f"{name} of ", f"{name}() ")), text
    assert text.count("(at ") <= 1, text  # no message inside of a message
    heads = text.split(": ")[:3]
    assert len({*heads}) == len(heads), text


def test_all_public_functions_have_rows() -> None:
    covered = {row.values[0] for row in ROWS}
    public = {name for name in sw.__all__ if callable(getattr(sw, name)) and not isinstance(getattr(sw, name), type)}
    assert public - covered - TAKE_ANYTHING - IN_JAX == set()
    assert {f"random.{name}" for name in sw.random.__all__} <= covered
    in_nn = {f"nn.{name}" for name in sw.nn.__all__} - {"nn.identity", "nn.initializers", "nn.swish", "nn.hard_swish"}
    assert in_nn <= covered
    assert {f"nn.initializers.{name}" for name in sw.nn.initializers.__all__ if name not in ALIASES} <= covered
    assert set(sw.testing.__all__) <= covered
