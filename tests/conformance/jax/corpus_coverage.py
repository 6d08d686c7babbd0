# SPDX-License-Identifier: Apache-2.0
"""Which functions of JAX's libraries the rows of ``corpus_functions.py`` call: found by tracing each row.

A function counts if a row is the function itself, or calls it by its public name. What a library calls internally does
not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax import lax

from tests.conformance.jax.corpus_functions import FUNCTIONS

_SORTS = (
    "argmax argmin argpartition argsort argwhere bincount compress count_nonzero digitize extract flatnonzero "
    "histogram histogram2d histogram_bin_edges histogramdd intersect1d isin lexsort median nanargmax nanargmin "
    "nanmedian nanpercentile nanquantile nonzero partition percentile quantile searchsorted setdiff1d setxor1d "
    "sort sort_complex union1d unique unique_all unique_counts unique_inverse unique_values where"
)
_LOOPS = (
    "associative_scan cond cumlogsumexp cummax cummin cumprod cumsum custom_linear_solve custom_root fori_loop map "
    "scan switch while_loop"
)
_CONVOLUTIONS = (
    "conv conv_general_dilated conv_general_dilated_local conv_general_dilated_patches conv_transpose "
    "conv_with_general_padding reduce_window"
)
# The functions of a group: all public ones of a module, or those named.
GROUPS: tuple[tuple[Any, str], ...] = (
    (jnp.linalg, ""),
    (jsp.linalg, ""),
    (lax.linalg, ""),
    (jnp.fft, ""),
    (jsp.fft, ""),
    (jax.random, ""),
    (jax.nn, ""),
    (jsp.special, ""),
    (jsp.signal, ""),
    (jnp, _SORTS),
    (jnp, "convolve correlate"),
    (lax, "sort sort_key_val top_k approx_max_k approx_min_k"),
    (lax, _CONVOLUTIONS),
    (lax, _LOOPS),
    (jax.ops, ""),
)
WITHOUT_ROW = {
    "jax.random.key_dtype": "it computes no array",
    "jax.random.key_impl": "it computes no array",
    "jax.nn.get_scaled_dot_general_config": "it computes no array",
    "jax.nn.scaled_matmul": "JAX lowers it for GPUs only",
}


def _public() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    for module, names in GROUPS:
        for name in names.split() or [name for name in dir(module) if not name.startswith("_")]:
            function = getattr(module, name)
            # Classes and primitives are types, not functions.
            if callable(function) and not isinstance(function, type) and not name.endswith("_p"):
                yield module, name, function


@contextmanager
def _recorded(called: set[str]) -> Iterator[None]:
    """Calls by a public name add it to `called`."""

    def recording(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            called.add(name)
            return function(*args, **options)

        return call

    public = list(_public())
    try:
        for module, name, function in public:
            setattr(module, name, recording(f"{module.__name__}.{name}", function))
        yield
    finally:
        for module, name, function in public:
            setattr(module, name, function)


def called_functions() -> dict[str, set[str]]:
    """The public functions that each row calls."""
    public = list(_public())
    found: dict[str, set[str]] = {}
    for row, (function, arrays) in FUNCTIONS.items():
        found[row] = {f"{module.__name__}.{name}" for module, name, own in public if own is function}
        with _recorded(found[row]):
            jax.eval_shape(lambda *x, function=function: function(*x), *arrays)  # the lambda is traced anew
    return found


def functions_without_row() -> list[str]:
    """The public functions that no row calls."""
    called = set().union(*called_functions().values())
    return sorted({f"{module.__name__}.{name}" for module, name, _ in _public()} - called - WITHOUT_ROW.keys())
