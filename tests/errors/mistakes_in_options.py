# SPDX-License-Identifier: Apache-2.0
"""Mistakes in the options of jit, grad and vmap: each row holds the whole message."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.errors.mistakes import MESH, X, on_mesh, row

ROWS = sw.device_put(X, sw.NamedSharding(MESH, P("data")))


def power(x: Any, n: Any) -> Any:
    return x**n


def product(x: Any, w: Any) -> Any:
    return (x * w).sum()


# ---- static arguments -----------------------------------------------------------------------------------------------

INTEGERS = r"^jit: static_argnums must be an integer or a sequence of integers, got "


@row(TypeError, INTEGERS + r"'n'; write static_argnames='n' \(at [^)]*\)$")
def static_argnums_of_a_name() -> None:
    on_mesh(power, static_argnums="n")


@row(TypeError, INTEGERS + r"\['x', 'n'\]; write static_argnames=\['x', 'n'\] \(at [^)]*\)$")
def static_argnums_of_names() -> None:
    on_mesh(power, static_argnums=["x", "n"])


@row(TypeError, INTEGERS + r"1\.5; count the positional arguments from 0 \(at [^)]*\)$")
def static_argnums_of_a_float() -> None:
    on_mesh(power, static_argnums=1.5)


@row(TypeError, INTEGERS + r"True; count the positional arguments from 0 \(at [^)]*\)$")
def static_argnums_of_a_bool() -> None:
    on_mesh(power, static_argnums=True)


NAMES = r"^jit: static_argnames must be a name or a sequence of names, got "


@row(TypeError, NAMES + r"3; write static_argnums=3 \(at [^)]*\)$")
def static_argnames_of_a_number() -> None:
    on_mesh(power, static_argnames=3)


@row(TypeError, NAMES + r"\('n', 1\.5\); write the names of parameters \(at [^)]*\)$")
def static_argnames_of_a_name_and_a_float() -> None:
    on_mesh(power, static_argnames=("n", 1.5))


# ---- shardings ------------------------------------------------------------------------------------------------------

PLACES = "jit: in_shardings of x|jit: out_shardings of result|device_put"
TEXT = rf"""^({PLACES}): text must be that of a sharding, such as '\[{{"x"}}, {{}}\]', got """


@row(sw.ShardingError, TEXT + r"""'data'; write P\("data"\) for names of axes \(at [^)]*\)$""")
def in_shardings_of_a_name() -> None:
    on_mesh(lambda x: x, in_shardings="data")(X)


@row(sw.ShardingError, TEXT + r"""'data, model'; write P\("data", "model"\) for names of axes \(at [^)]*\)$""")
def out_shardings_of_names() -> None:
    on_mesh(lambda x: x, out_shardings="data, model")(X)


@row(sw.ShardingError, TEXT + r"""'x'; write P\("x"\) for names of axes \(at [^)]*\)$""")
def device_put_to_a_name() -> None:
    sw.device_put(ROWS, "x")


# ---- shapes ---------------------------------------------------------------------------------------------------------

SIZES = (
    r"^np\.reshape: sizes must be integers, got \(6\.0, 8\); use // or int\(\.\.\.\) to compute a size \(at [^)]*\)$"
)


@row(TypeError, SIZES)
def traced_reshape_to_a_float() -> None:
    on_mesh(lambda x: x.reshape(6.0, 8))(X)


@row(TypeError, SIZES)
def reshape_to_a_float() -> None:
    ROWS.reshape(6.0, 8)


@row(TypeError, SIZES)
def numpy_reshape_to_a_float() -> None:
    np.reshape(ROWS, (6.0, 8))  # type: ignore[arg-type, call-overload]


# ---- grad -----------------------------------------------------------------------------------------------------------

ARGNUMS = r"grad: argnums must be an integer or a sequence of integers, got "


@row(TypeError, "^" + ARGNUMS + r"'w'; count the positional arguments from 0 \(at [^)]*\)$")
def argnums_of_a_name() -> None:
    sw.grad(product, argnums="w")


@row(TypeError, "^value_and_" + ARGNUMS + r"None; count the positional arguments from 0 \(at [^)]*\)$")
def argnums_of_none() -> None:
    sw.value_and_grad(product, argnums=None)  # type: ignore[arg-type]


@row(sw.ShapeError, r"^grad: argnums must be in \[-2, 2\), the positional arguments, got 5 \(at [^)]*\)$")
def argnums_beyond_the_arguments() -> None:
    on_mesh(sw.grad(product, argnums=5))(X, X)


# ---- vmap -----------------------------------------------------------------------------------------------------------


@row(TypeError, r"^vmap: takes a function, got 3 \(at [^)]*\)$")
def vmap_of_a_number() -> None:
    sw.vmap(3)  # type: ignore[arg-type]


MAPS_NOTHING = r"; write in_axes=0, or call the function without vmap \(at [^)]*\)$"


@row(sw.ShapeError, r"^vmap: in_axes must map an argument, got None" + MAPS_NOTHING)
def in_axes_of_none() -> None:
    on_mesh(sw.vmap(lambda x: x, in_axes=None))(X)


@row(sw.ShapeError, r"^vmap: in_axes must map an argument, got \(None,\)" + MAPS_NOTHING)
def in_axes_that_map_no_argument() -> None:
    on_mesh(sw.vmap(lambda x: x, in_axes=(None,)))(X)


@row(sw.ShapeError, r"^vmap: an argument must hold an array, got \(\) \(at [^)]*\)$")
def vmap_without_arguments() -> None:
    on_mesh(sw.vmap(lambda: 1))()


@row(sw.ShapeError, r"^vmap: in_axes must hold dims or None, got 'a' \(at [^)]*\)$")
def in_axes_of_text() -> None:
    on_mesh(sw.vmap(lambda x: x, in_axes="a"))(X)


@row(sw.ShapeError, r"^vmap: in_axes must be in \[-2, 2\) for x of 2 dims, got 5 \(at [^)]*\)$")
def in_axes_beyond_the_dims() -> None:
    on_mesh(sw.vmap(lambda x: x, in_axes=5))(X)


@row(
    sw.ShapeError,
    r"^vmap: in_axes must have one entry for each of the 1 positional arguments, got \(0, 0\); "
    r"write None for an argument that is not mapped \(at [^)]*\)$",
)
def in_axes_for_more_arguments() -> None:
    on_mesh(sw.vmap(lambda x: x, in_axes=(0, 0)))(X)


@row(
    sw.ShapeError,
    r"^vmap: in_axes must be a prefix of the tree it describes, got a dict with key 'b' where "
    r"the tree has a dict with key 'a', at \[0\]; give one axis for everything below a point of the tree, "
    r"or one for each leaf \(at [^)]*\)$",
)
def in_axes_of_another_tree() -> None:
    on_mesh(sw.vmap(lambda x: x["a"], in_axes=({"b": 0},)))({"a": X})


@row(sw.ShapeError, r"^vmap: out_axes must hold dims or None, got 1\.5 \(at [^)]*\)$")
def out_axes_of_a_float() -> None:
    on_mesh(sw.vmap(lambda x: x, out_axes=1.5))(X)


@row(sw.ShapeError, r"^vmap: out_axes must be in \[-2, 2\) for a result of 2 dims, got 7 \(at [^)]*\)$")
def out_axes_beyond_the_dims() -> None:
    on_mesh(sw.vmap(lambda x: x, out_axes=7))(X)


@row(
    sw.ShapeError,
    r"^vmap: a result with out_axes None must be the same for all examples, got Tracer<float32\[6\]>; "
    r"give it a dim \(at [^)]*\)$",
)
def out_axes_of_none() -> None:
    on_mesh(sw.vmap(lambda x: x, out_axes=None))(X)


@row(sw.ShardingError, r"^jit: windowed_einsum must be 'time' or 'never' or 'always', got True \(at [^)]*\)$")
def windowed_einsum_of_a_flag() -> None:
    on_mesh(power, windowed_einsum=True)


# ---- weight-update sharding -----------------------------------------------------------------------------------------

AXES = r"^jit: shard_update must be the name of an axis, a sub-axis, or a tuple of them, got "


@row(sw.ShardingError, AXES + r"int 3; write shard_update='data' \(at [^)]*\)$")
def shard_update_of_a_number() -> None:
    on_mesh(power, shard_update=3)


@row(sw.ShardingError, AXES + r"tuple \(\); write shard_update='data' \(at [^)]*\)$")
def shard_update_of_no_axis() -> None:
    on_mesh(power, shard_update=())


UNKNOWN_AXIS = r"^shard_update: an axis must be of mesh @mesh, got "


@row(sw.ShardingError, UNKNOWN_AXIS + r'"batch"; use one of .* \(at [^)]*\)$')
def shard_update_of_an_unknown_axis() -> None:
    on_mesh(lambda x: x + x, shard_update="batch")(X)


@row(sw.ShardingError, UNKNOWN_AXIS + r'"data\\0A"; use one of .* \(at [^)]*\)$')
def shard_update_of_a_name_with_a_line_break() -> None:
    on_mesh(lambda x: x + x, shard_update="data\n")(X)


@row(sw.ShardingError, r"^shard_update: there must be an axis, got {} \(at [^)]*\)$")
def shard_update_of_an_empty_list_of_axes() -> None:
    on_mesh(lambda x: x + x, shard_update="{}")(X)


@row(sw.ShardingError, r"^jit: gather_dtype is an option of shard_update, got 'bfloat16'; name axes: .* \(at [^)]*\)$")
def gather_dtype_without_shard_update() -> None:
    on_mesh(power, gather_dtype="bfloat16")


@row(ValueError, r"^jit: combine_bytes must be a size, such as '30MiB' or 0, got 'all' \(at [^)]*\)$")
def combine_bytes_of_a_word() -> None:
    on_mesh(power, combine_bytes="all")


@row(ValueError, r"^jit: combine_bytes must be a number of bytes that is not negative, got -1 \(at [^)]*\)$")
def combine_bytes_below_zero() -> None:
    on_mesh(power, combine_bytes=-1)


@row(sw.ShardingError, r"^jit: gather_dtype must be a dtype of floats, got int32 \(at [^)]*\)$")
def gather_dtype_of_integers() -> None:
    on_mesh(power, shard_update="data", gather_dtype=np.int32)
