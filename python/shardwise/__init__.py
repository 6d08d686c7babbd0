# SPDX-License-Identifier: Apache-2.0
"""Shardwise partitions tensor programs: NumPy with a few annotations in, one SPMD program for N devices out.

>>> import numpy as np
>>> import shardwise as sw
>>> mesh = sw.Mesh({"data": 4})
>>> @sw.jit(mesh=mesh)
... def double(x):
...     x = sw.split(x, 0, "data")
...     return x + x
>>> np.asarray(double(np.arange(8)))
array([ 0,  2,  4,  6,  8, 10, 12, 14])
"""

from __future__ import annotations

import atexit as _atexit
from typing import TYPE_CHECKING as _TYPE_CHECKING

import numpy as _np  # noqa: F401 - its OpenBLAS loads before ours, and makes its own choice

from .process.blas import coretype_for_this_cpu as _coretype_for_this_cpu

with _coretype_for_this_cpu():
    from . import _core

# Names imported here without an underscore are public. `from shardwise import *` imports those in __all__.
# The others are imported `as` themselves: they would replace builtins, modules, or common names of a program.
from . import (
    debug as debug,
    dtensor,
    errors as errors,
    hardware as hardware,
    interop as interop,
    lax as lax,
    layouts,
    models as models,
    mpi as mpi,
    nn as nn,
    numpy as numpy,
    optim as optim,
    random as random,
    testing as testing,
    tree as tree,
)
from .annotations import (
    logical,
    name as name,
    propagation_barrier,
    replicate,
    shard,
    sharding_group,
    split as split,
    with_sharding_constraint,
)
from .array import Array, ShapeDtypeStruct, Shard, block_until_ready, device_get
from .control_flow import (
    associative_scan,
    checkpoint,
    checkpoint_policies,
    cond,
    fori_loop,
    map as map,
    scan,
    switch,
    while_loop,
)
from .custom_calls import custom_call, register_custom_call
from .derivatives import custom_jvp, custom_vjp, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .dtypes import bfloat16
from .errors import (
    CheckpointError,
    DeletedArrayError,
    DTypeError,
    Error,
    InternalError,
    MeshError,
    OutOfMemoryError,
    ParseError,
    ShapeError,
    ShardingError,
    ShardingWarning,
    TracerBoolConversionError,
    TracerConversionError,
    TracingWarning,
    UnsupportedError,
)
from .from_shards import make_array_from_callback, make_array_from_single_device_arrays
from .grad import grad, stop_gradient, value_and_grad
from .jit import eval_shape, jit
from .layouts import axis_rules
from .manual import manual, shard_map
from .numpy.updates import at as at
from .placement import device_put, reshard
from .process.lazy_names import lazy_names as _lazy_names
from .programs import text_programs as _text_programs  # noqa: F401 - implements Module.compile
from .programs.choices import Choices, ChosenOp
from .programs.module import Module, parse as parse
from .programs.op_rules import ShardingRule, sharding_rule
from .programs.stages import Lowered, Program, Traced
from .shardings.mesh import Mesh, get_mesh, make_mesh, set_mesh
from .shardings.partition_spec import P, PartitionSpec, open as open, priority as priority, sub as sub
from .shardings.sharding import UNSPECIFIED, NamedSharding
from .trees.registry import register_dataclass, register_pytree_node, register_pytree_node_class
from .vmap import vmap

if _TYPE_CHECKING:
    from .checkpoints import (
        latest as latest,
        load as load,
        load_orbax,
        load_safetensors,
        save as save,
        save_safetensors,
        wait_until_saved,
    )
    from .interop import annotate_jax, from_jax

__getattr__, __dir__ = _lazy_names(
    __name__,
    {"annotate_jax": ".interop", "from_jax": ".interop"}
    | dict.fromkeys(("latest", "load", "load_orbax", "load_safetensors"), ".checkpoints")
    | dict.fromkeys(("save", "save_safetensors", "wait_until_saved"), ".checkpoints"),
    {"checkpoint_policies", "debug", "dtensor", "errors", "hardware", "interop", "lax", "layouts"}
    | {"models", "mpi", "nn", "numpy", "optim", "random", "testing", "tree"},
)

# Registered last, so that it runs before the exit function of optree, which unregisters lists as nodes.
_atexit.register(_core.runtime.wait_for_threads)

__version__ = "0.1.0"

__all__ = [
    "UNSPECIFIED",
    "Array",
    "CheckpointError",
    "Choices",
    "ChosenOp",
    "DTypeError",
    "DeletedArrayError",
    "Error",
    "InternalError",
    "Lowered",
    "Mesh",
    "MeshError",
    "Module",
    "NamedSharding",
    "OutOfMemoryError",
    "P",
    "ParseError",
    "PartitionSpec",
    "Program",
    "ShapeDtypeStruct",
    "ShapeError",
    "Shard",
    "ShardingError",
    "ShardingRule",
    "ShardingWarning",
    "Traced",
    "TracerBoolConversionError",
    "TracerConversionError",
    "TracingWarning",
    "UnsupportedError",
    "annotate_jax",
    "associative_scan",
    "axis_rules",
    "bfloat16",
    "block_until_ready",
    "checkpoint",
    "checkpoint_policies",
    "cond",
    "custom_call",
    "custom_jvp",
    "custom_vjp",
    "device_get",
    "device_put",
    "dtensor",
    "eval_shape",
    "fori_loop",
    "from_jax",
    "get_mesh",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "layouts",
    "linearize",
    "load_orbax",
    "load_safetensors",
    "logical",
    "make_array_from_callback",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "manual",
    "propagation_barrier",
    "register_custom_call",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "replicate",
    "reshard",
    "save_safetensors",
    "scan",
    "set_mesh",
    "shard",
    "shard_map",
    "sharding_group",
    "sharding_rule",
    "stop_gradient",
    "switch",
    "value_and_grad",
    "vjp",
    "vmap",
    "wait_until_saved",
    "while_loop",
    "with_sharding_constraint",
]
