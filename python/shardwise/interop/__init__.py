# SPDX-License-Identifier: Apache-2.0
"""Other libraries: converters for their objects, and programs from and to them.

Importing this package registers each library, and imports none of them.
"""

from . import jax_objects as jax_objects
from .comparison import Comparison as Comparison, compare as compare
from .handover import annotate_jax as annotate_jax
from .jax_functions import JaxFunction as JaxFunction, from_jax as from_jax
