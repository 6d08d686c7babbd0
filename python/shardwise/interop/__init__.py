# SPDX-License-Identifier: Apache-2.0
"""Other libraries: converters for their objects, and programs from and to them.

Importing this package registers each library, and imports none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..process.implementations import IMPLEMENTATIONS
from ..process.lazy_names import lazy_module, lazy_names
from . import jax_objects as jax_objects

if TYPE_CHECKING:
    from .comparison import Comparison as Comparison, compare as compare
    from .handover import annotate_jax as annotate_jax
    from .jax_functions import JaxFunction as JaxFunction, from_jax as from_jax
    from .to_jax.program import JaxProgram as JaxProgram

__all__ = ["Comparison", "JaxFunction", "JaxProgram", "annotate_jax", "compare", "from_jax"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Comparison": ".comparison",
        "JaxFunction": ".jax_functions",
        "JaxProgram": ".to_jax.program",
        "annotate_jax": ".handover",
        "compare": ".comparison",
        "from_jax": ".jax_functions",
    },
)
for _operation in ("to_jax", "export_text", "to_source", "jax_shardings"):
    IMPLEMENTATIONS.provide_later(_operation, lazy_module(__name__, ".handover"))
IMPLEMENTATIONS.provide_later("checkpoint_policy", lazy_module(__name__, ".checkpoint_policy"))
