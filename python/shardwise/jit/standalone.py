# SPDX-License-Identifier: Apache-2.0
"""Runs transforms outside of :func:`shardwise.jit`: each call is a cached program of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import Any

from ..recording.tracing import UserCall
from ..shardings.mesh import Mesh
from ..trees import flatten, unflatten
from ..trees.argument_names import names_of_leaves
from ..unpartitioned import unpartitioned_mesh
from .cache import static_leaf_key
from .function import JitFunction
from .options import JitOptions

__all__ = ["jitted_with", "run_as_program"]


def run_as_program(
    what: str,
    function: Callable[..., Any],
    fun: Callable[..., Any],
    programs: dict[Any, JitFunction],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mesh: Mesh | None = None,
    is_plain: bool = False,
) -> Any:
    """Run ``function``, the transform ``what`` of ``fun``, as a program of its own: on one device if no mesh is known.

    The program is cached in ``programs``. If ``fun`` is jitted, its mesh and options of propagation apply. Non-array
    arguments are static. With ``is_plain``, the program runs at once as it is, on NumPy arrays, and returns such.
    """
    leaves, tree = flatten((args, kwargs))
    is_array = [isinstance(leaf, (bool, int, float)) or hasattr(type(leaf), "__array__") for leaf in leaves]
    rest = [None if array else leaf for leaf, array in zip(leaves, is_array)]

    def run(*arrays: Any) -> Any:
        values = iter(arrays)
        call_args, call_kwargs = unflatten(tree, [next(values) if a else x for x, a in zip(rest, is_array)])
        return function(*call_args, **call_kwargs)

    reference = unpartitioned_mesh()
    mesh = mesh or reference
    key = (tree, tuple(is_array), tuple(map(static_leaf_key, rest)), mesh)
    if key not in programs:
        options = stated_options_of(fun)
        names = tuple([name for name, array in zip(names_of_leaves(fun, args, kwargs), is_array) if array])
        user_call = UserCall(fun, transform=names, what=what, needs_mesh=False)
        programs[key] = JitFunction(run, user_call, **(options if mesh is None else {**options, "mesh": mesh}))
    arrays = [leaf for leaf, array in zip(leaves, is_array) if array]
    if reference is None and not is_plain:
        return programs[key](*arrays)
    traced, traced_leaves = programs[key]._traced_call(tuple(arrays), {})
    return traced._run_unpartitioned(traced_leaves)


def stated_options_of(fun: Any) -> JitOptions:
    """The explicit options of ``fun``'s jit, also through transforms and partials; empty if there is no jit."""
    while not isinstance(fun, JitFunction):
        if isinstance(fun, partial):
            fun = fun.func
        elif isinstance(fun, MethodType):
            fun = fun.__func__
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            return {}
    return fun.stated_options


def jitted_with(fun: Callable[..., Any], options: Mapping[str, Any]) -> JitFunction:
    """``fun`` as a jitted function with these options; unspecified ones keep the values of its own jit, if any."""
    if isinstance(fun, JitFunction):
        return fun._with_options(**options)
    return JitFunction(fun, **{**stated_options_of(fun), **options})
