# SPDX-License-Identifier: Apache-2.0
"""What a function of JAX is traced for: static arguments, the settings of JAX, and the parameters that errors name."""

from __future__ import annotations

import inspect
import keyword
import re
import struct
import types
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial, update_wrapper
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..jit.options import Arguments
from .optional import jax

__all__ = [
    "Origin",
    "differentiated_arguments",
    "jitted_of",
    "static_arguments_of",
    "trace_context",
    "value_key",
    "with_parameters",
]


def jitted_of(function: Callable[..., Any]) -> tuple[Any, int]:
    """The jitted function that ``function`` calls, or None, and how many positional arguments are bound to it."""
    fun: Any = function
    bound = 0
    while True:
        if isinstance(fun, partial):
            fun, bound = fun.func, bound + len(fun.args)
        elif isinstance(fun, types.MethodType):
            fun, bound = fun.__func__, bound + 1
        else:
            return (fun if isinstance(fun, jax.stages.Wrapped) else None), bound


def static_arguments_of(fun: Callable[..., Any]) -> Arguments:
    """The static arguments of a function that `jax.jit` or a wrapper of it made."""
    jitted, bound = jitted_of(fun)
    if jitted is None:
        return Arguments(set(), set())
    # JAX has no public name for it. A function of `nnx.jit` has that of JAX inside, with the same arguments.
    info = getattr(jitted, "_jit_info", None) or getattr(getattr(jitted, "jitted_fn", None), "_jit_info", None)
    if info is None:
        return Arguments(set(), set())
    positions = {i - bound for i in info.static_argnums if i >= bound}
    names = set(info.static_argnames)
    return Arguments(positions, names & set(inspect.signature(fun).parameters) if bound else names)


# JAX keeps no other word of what a function is the gradient of.
_GRADIENT = re.compile(
    r"(Gradient|Value and gradient) of .* with respect to positional argument\(s\) ([\d, ()]+)\. Takes"
)


def differentiated_arguments(fun: Callable[..., Any]) -> tuple[list[int], bool]:
    """The ``argnums`` of a function made by `jax.grad` or `jax.value_and_grad`, and whether the gradients come first.

    Among the leaves of its result, the gradients come first for `jax.grad` and last for `jax.value_and_grad`.
    """
    found = _GRADIENT.match(inspect.getdoc(fun) or "")
    return ([], True) if found is None else ([*map(int, re.findall(r"\d+", found[2]))], found[1] == "Gradient")


@cache
def _probe() -> Any:
    return jax.jit(lambda: ())


def trace_context() -> Any:
    """A key of the settings of JAX that a trace depends on: equal keys, equal programs.

    JAX caches the jaxprs of jitted functions by its trace context, which has no public name. So the jaxpr of an empty
    function is one object in each context.
    """
    return _probe().trace().jaxpr, jax.config.jax_default_prng_impl


def value_key(x: Any) -> Any:
    """A Python value in a cache key: by type and, for floating numbers, by bits."""
    if isinstance(x, np.generic):
        return type(x), x.tobytes()
    if isinstance(x, tuple):
        return type(x), *map(value_key, x)
    if type(x) is float:
        return float, struct.pack("d", x)
    if type(x) is complex:
        return complex, struct.pack("dd", x.real, x.imag)
    return type(x), x


class Origin(NamedTuple):
    """The function and the argument names that errors of JAX show."""

    function: Callable[..., Any]
    names: Sequence[str]  # of the leaves: params['w']; empty if they have none


class _Argument:
    """The leaves of one argument, as a tree in JAX with their paths."""

    def __init__(self, paths: tuple[str, ...], leaves: Sequence[Any]) -> None:
        self.paths = paths
        self.leaves = leaves


@cache
def _register_argument() -> None:
    jax.tree_util.register_pytree_with_keys(
        _Argument,
        lambda argument: (tuple(zip(argument.paths, argument.leaves)), argument.paths),
        _Argument,
    )


def with_parameters(
    flat: Callable[..., Any], origin: Origin, leaves: Sequence[Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """A function of leaves with the source and the parameters of ``origin``, and its arguments.

    `params['w']` and `params['b']` become one argument `params` with these two paths.
    """
    _register_argument()

    def named(*arguments: Any) -> Any:
        return flat(*_leaves_of(arguments))

    source: Any = origin.function
    while isinstance(source, partial):
        source = source.func
    if not hasattr(source, "__name__"):  # an object with __call__
        source = type(source).__call__
    update_wrapper(named, source, updated=())
    split = [re.fullmatch(r"([^.\[]*)(.*)", name, re.DOTALL) for name in origin.names]
    rows = [(found[1], found[2], leaf) for found, leaf in zip(split, leaves) if found]
    groups = [(name, list(group)) for name, group in groupby(rows, lambda row: row[0])]
    names = [name for name, _ in groups]
    if len(rows) == len(leaves) and len(set(names)) == len(names) and all(map(_is_parameter, names)):
        arguments: list[Any] = [_Argument(*map(tuple, list(zip(*group))[1:])) for _, group in groups]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    else:
        arguments, parameters = list(leaves), [inspect.Parameter("leaves", inspect.Parameter.VAR_POSITIONAL)]
    named.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return named, arguments


def _is_parameter(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _leaves_of(arguments: Sequence[Any]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, _Argument):
            yield from argument.leaves
        else:
            yield argument
