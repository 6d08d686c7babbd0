# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions with any results, in both modes, under the names of JAX.

>>> import numpy as np
>>> import shardwise as sw
>>> value, pull_back = sw.vjp(lambda x, y: x * y, np.array([2.0]), np.array([5.0]))
>>> [np.asarray(g) for g in pull_back(np.ones(1))]
[array([5.]), array([2.])]
"""

from __future__ import annotations

from .custom import custom_jvp, custom_vjp
from .forward import jvp, linearize
from .jacobians import hessian, jacfwd, jacrev
from .reverse import vjp

__all__ = ["custom_jvp", "custom_vjp", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
