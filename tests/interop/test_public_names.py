# SPDX-License-Identifier: Apache-2.0
"""`dir()` of public modules lists public names, and functions with names of JAX have JAX's parameters."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import shardwise as sw

from ..support.oracles import oracle

jax: Any = oracle("jax")

MODULES = [
    "numpy",
    "random",
    "tree",
    "testing",
    "debug",
    "hardware",
    "dtensor",
    "models",
    "layouts",
    "errors",
    "reports",
]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(jax, name) for name in (
        "jit", "grad", "value_and_grad", "vmap", "checkpoint", "eval_shape", "make_mesh", "device_put", "device_get",
        "shard_map", "ShapeDtypeStruct", "block_until_ready",
    )},
    **{name: getattr(jax.lax, name) for name in (
        "scan", "cond", "switch", "while_loop", "fori_loop", "associative_scan", "with_sharding_constraint",
        "stop_gradient",
    )},
}  # fmt: skip

# What differs, and why.
ONLY_OURS = {
    "jit": {"mesh": "devices are virtual", "sharding_rules": "", "choices": "", "strategy": "", "conservative": "",
            "strict_divisible": "", "objective": "", "hardware": "", "memory_limit": "", "combine_bytes": "",
            "shard_update": "", "gather_dtype": "", "windowed_einsum": "options of our partitioner"},
    "device_put": {"root": "ranks", "own_part": "ranks"},
}  # fmt: skip
ONLY_JAX = {
    "jit": {"keep_unused": "", "device": "", "backend": "", "inline": "", "compiler_options": "of XLA"},
    "grad": {"reduce_axes": "pmap"},
    "value_and_grad": {"reduce_axes": "pmap"},
    "vmap": {"sum_match": "sizes of mapped axes"},
    "checkpoint": {"concrete": "tracing in JAX"},
    "scan": {"_split_transpose": "not public"},
    "cond": {"operand": "deprecated"},
    "switch": {"operand": "deprecated"},
    "make_mesh": {"axis_types": "one type of axis"},
    "device_put": {"src": "", "donate": "", "may_alias": "one host memory"},
    "ShapeDtypeStruct": {"weak_type": "", "manual_axis_type": "", "is_ref": "types of JAX", "vma": "types of JAX"},
}


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def is_python(function: Any) -> bool:
    """Whether its signature can be read; not if it is one of C++."""
    return inspect.isfunction(inspect.unwrap(function))


@pytest.mark.parametrize("name", MODULES)
def test_modules_list_public_names(name: str) -> None:
    module = importlib.import_module(f"shardwise.{name}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, each) for each in dir(module))


def test_the_package_lists_its_names() -> None:
    assert set(sw.__all__) <= set(dir(sw))
    assert {"split", "at", "numpy", "testing"} <= set(dir(sw))
    assert not {"Any", "annotations", "Sequence"} & set(dir(sw))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_those_of_jax(name: str) -> None:
    ours, theirs = parameters(getattr(sw, name)), parameters(FUNCTIONS[name])
    assert [each for each in ours if each not in ONLY_OURS.get(name, {})] == [
        each for each in theirs if each not in ONLY_JAX.get(name, {})
    ]


# Of all functions of a module.
ONLY_JAX_IN = {
    "random": {"impl": "one generator", "dtype": "of key", "out_sharding": "propagation decides", "replace": "",
               "mode": "how bits become numbers"},
    "tree": {"is_leaf_takes_path": "new in JAX"},
}  # fmt: skip


@pytest.mark.parametrize("module", ONLY_JAX_IN)
def test_parameters_of_modules_are_those_of_jax(module: str) -> None:
    own, other = getattr(sw, module), getattr(jax, module)
    shared = [name for name in dir(own) if hasattr(other, name) and is_python(getattr(other, name))]
    assert len(shared) > 5
    for name in shared:
        ours, theirs = parameters(getattr(own, name)), parameters(getattr(other, name))
        assert ours == [each for each in theirs if each in ours or each not in ONLY_JAX_IN[module]], name
