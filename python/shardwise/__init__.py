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

import os as _os

import numpy as _np

from . import _core

# Source lines in reports are the user's. The models' own lines count as such: they are programs to read.
_HERE = _os.path.dirname(__file__)
_core.ir.hide_frames_of(
    [
        *(_os.path.join(_HERE, entry) for entry in _os.listdir(_HERE) if entry != "models"),
        *(_os.path.join(_HERE, "models", entry) for entry in ("configs.py", "layers.py", "initial.py")),
        _os.path.dirname(_np.__file__) + _os.sep,
    ]
)

from . import dtensor, errors, layouts, models, numpy, random, testing  # noqa: E402
from .annotations import (  # noqa: E402
    logical,
    name,
    propagation_barrier,
    replicate,
    shard,
    sharding_group,
    split,
    with_sharding_constraint,
)
from .array import Array, ShapeDtypeStruct, Shard  # noqa: E402
from .dtypes import bfloat16  # noqa: E402
from .errors import (  # noqa: E402
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
    UnsupportedError,
)
from .grad import grad, value_and_grad  # noqa: E402
from .jit import jit  # noqa: E402
from .layouts import axis_rules  # noqa: E402
from .manual import manual, shard_map  # noqa: E402
from .mesh import Mesh, get_mesh, make_mesh, set_mesh  # noqa: E402
from .module import Module, parse  # noqa: E402
from .op_rules import ShardingRule, sharding_rule  # noqa: E402
from .partition_spec import P, PartitionSpec, open, priority, sub  # noqa: E402
from .placement import device_put, reshard  # noqa: E402
from .sharding import UNSPECIFIED, NamedSharding  # noqa: E402
from .stages import Lowered, Program, Traced  # noqa: E402
from .vmap import vmap  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "UNSPECIFIED",
    "Array",
    "DTypeError",
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
    "UnsupportedError",
    "axis_rules",
    "bfloat16",
    "device_put",
    "dtensor",
    "errors",
    "get_mesh",
    "grad",
    "jit",
    "layouts",
    "logical",
    "make_mesh",
    "manual",
    "models",
    "name",
    "numpy",
    "open",
    "parse",
    "priority",
    "propagation_barrier",
    "random",
    "replicate",
    "reshard",
    "set_mesh",
    "shard",
    "shard_map",
    "sharding_group",
    "sharding_rule",
    "split",
    "sub",
    "testing",
    "value_and_grad",
    "vmap",
    "with_sharding_constraint",
]
