# SPDX-License-Identifier: Apache-2.0
"""The forms in which values of narrow dtypes are combined.

bfloat16, float8_…, float4_…    sums and products in float32, rounded once
float16                         the same, and maxima and minima of dims in float32: in a fusion, XLA:CPU may return
                                either zero for the minimum of both
int2, int4, uint2, uint4        int8 or uint8, since XLA has no reductions of them
float8_e8m0fnu                  maxima and minima as ranks: its least value is subnormal in float32, which XLA:CPU
                                flushes to zero, and it has no zero
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..._core.ir import Region
from ..source.narrow_dtypes import is_narrow_float, is_small_integer
from ..source.scope import Scope, call, listed

__all__ = [
    "Form", "converted", "form_of", "form_of_choice", "form_of_dims", "form_of_integer", "returned", "rows_returned",
]  # fmt: skip

_RANKED = "float8_e8m0fnu"
_SIGNS = {"max": 1, "maximum": 1, "min": -1, "minimum": -1}
_CHOICES = {f"stablehlo.{name}" for name in ("compare", "select", "and", "or", "xor", "not", "maximum", "minimum")}


@dataclass(frozen=True)
class Form:
    """A dtype in which values are combined, and the texts that convert into it and back.

    Attributes:
        dtype: the dtype.
        reducer: what combines the converted values, "max" for ranks that stand for a minimum; "" as it was.
    """

    dtype: str
    into: Callable[[str], str]
    back: Callable[[str], str]
    reducer: str = ""


def converted(form: Form | None, x: str) -> str:
    """A value in a form."""
    return x if form is None else form.into(f"({x})" if " " in x and not x.endswith(")") else x)


def returned(form: Form | None, x: str) -> str:
    """A value of a form in its own dtype."""
    return x if form is None else form.back(x)


def rows_returned(forms: Sequence[Form | None], x: str) -> str:
    """A tuple of values of forms in their own dtypes."""
    names = [f"y{i}" for i in range(len(forms))]
    return f"(lambda {', '.join(names)}: {listed(map(returned, forms, names))})(*{x})"


def _cast(dtype: str, wide: str) -> Form:
    return Form(wide, lambda x: f'{x}.astype("{wide}")', lambda x: f'{x}.astype("{dtype}")')


def form_of_integer(dtype: str) -> Form | None:
    """int8 or uint8 for an integer of less than a byte; None for other dtypes."""
    return _cast(dtype, "uint8" if dtype.startswith("u") else "int8") if is_small_integer(dtype) else None


def form_of(scope: Scope, dtype: str, combiner: str | None) -> Form | None:
    """How values are combined, by the name of a reducer or of an op; None for their own dtype."""
    name = (combiner or "").removeprefix("stablehlo.")
    if is_small_integer(dtype):
        return form_of_integer(dtype)
    if dtype == _RANKED and name in _SIGNS:
        sign = _SIGNS[name]
        ranked, of_ranks = scope.helper("ranked"), scope.helper("of_ranks")
        return Form("uint8", lambda x: call(ranked, x, sign), lambda x: call(of_ranks, x, f'"{dtype}"', sign), "max")
    if is_narrow_float(dtype) and name in ("add", "multiply", "sum", "prod"):
        return _cast(dtype, "float32")
    return None


def form_of_dims(scope: Scope, dtype: str, combiner: str) -> Form | None:
    """How the elements of whole dims are combined on one device, by the name of an op."""
    if dtype == "float16" and combiner.removeprefix("stablehlo.") in _SIGNS:
        return _cast(dtype, "float32")
    return form_of(scope, dtype, combiner)


def form_of_choice(region: Region, dtype: str) -> Form | None:
    """How a region that compares its arguments and returns some of them takes those of a dtype; None for the dtype."""
    if any(op.name not in _CHOICES for op in region.ops):
        return None
    return _cast(dtype, "float32") if dtype == _RANKED else form_of_integer(dtype)
