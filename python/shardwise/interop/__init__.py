# SPDX-License-Identifier: Apache-2.0
"""Other libraries: their objects in place of Shardwise's. Importing this package registers each library."""

from . import jax_objects as jax_objects
