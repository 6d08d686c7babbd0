# SPDX-License-Identifier: Apache-2.0
"""What NumPy has no name for, under the names of ``jax.lax``.

>>> import numpy as np
>>> import shardwise as sw
>>> mesh = sw.Mesh({"x": 4})
>>> total = sw.shard_map(lambda part: sw.lax.psum(part, "x"), mesh=mesh, in_specs=sw.P("x"), out_specs=sw.P())
>>> np.asarray(sw.jit(total, mesh=mesh)(np.arange(8)))
array([12, 16])
"""

from __future__ import annotations

from .. import control_flow
from ..grad import stop_gradient
from .calls import spelled
from .collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
)
from .convolution import (
    ConvDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_general_dilated_patches,
    conv_transpose,
    conv_with_general_padding,
)
from .elementwise import (
    bessel_i1e,
    bitcast_convert_type,
    clamp,
    clz,
    convert_element_type,
    digamma,
    erf,
    erf_inv,
    erfc,
    is_finite,
    lgamma,
    logistic,
    polygamma,
    population_count,
    reduce_precision,
    rem,
    rsqrt,
    shift_right_logical,
    zeta,
)
from .fourier import FftType, fft
from .indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from .paddings import padtype_to_pads
from .products import dot_general, ragged_dot
from .slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    pad,
)
from .sorting import argsort, sort, sort_key_val, top_k
from .windows import (
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce,
    reduce_window,
    select_and_scatter_add,
)

associative_scan = spelled("lax.associative_scan", control_flow.associative_scan)
cond = spelled("lax.cond", control_flow.cond)
fori_loop = spelled("lax.fori_loop", control_flow.fori_loop)
map = spelled("lax.map", control_flow.map)
scan = spelled("lax.scan", control_flow.scan)
switch = spelled("lax.switch", control_flow.switch)
while_loop = spelled("lax.while_loop", control_flow.while_loop)

__all__ = [
    "ConvDimensionNumbers",
    "FftType",
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "all_gather",
    "all_to_all",
    "argsort",
    "associative_scan",
    "axis_index",
    "axis_size",
    "bessel_i1e",
    "bitcast_convert_type",
    "clamp",
    "clz",
    "cond",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_patches",
    "conv_transpose",
    "conv_with_general_padding",
    "convert_element_type",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "digamma",
    "dot_general",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "erf",
    "erf_inv",
    "erfc",
    "fft",
    "fori_loop",
    "gather",
    "is_finite",
    "lgamma",
    "logistic",
    "map",
    "pad",
    "padtype_to_pads",
    "pmax",
    "pmean",
    "pmin",
    "polygamma",
    "population_count",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "ragged_dot",
    "reduce",
    "reduce_precision",
    "reduce_window",
    "rem",
    "rsqrt",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "select_and_scatter_add",
    "shift_right_logical",
    "sort",
    "sort_key_val",
    "stop_gradient",
    "switch",
    "top_k",
    "while_loop",
    "zeta",
]
