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
from .paddings import padtype_to_pads
from .slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from .windows import (
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce,
    reduce_precision,
    reduce_window,
    select_and_scatter_add,
)

__all__ = [
    "ConvDimensionNumbers",
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_patches",
    "conv_transpose",
    "conv_with_general_padding",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "padtype_to_pads",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "reduce",
    "reduce_precision",
    "reduce_window",
    "select_and_scatter_add",
]
