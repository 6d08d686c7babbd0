# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: trees of arrays in a folder, which load on another mesh or another number of ranks.

>>> import tempfile
>>> import numpy as np
>>> import shardwise as sw
>>> with tempfile.TemporaryDirectory() as folder:
...     sw.save(folder, {"w": np.arange(3), "epoch": 2}, step=7)
...     sw.latest(folder), sw.load(folder)
(7, {'epoch': 2, 'w': array([0, 1, 2])})
"""

from __future__ import annotations

from .loading import latest, load
from .orbax_checkpoints import load_orbax
from .safetensors_files import load_safetensors, save_safetensors
from .saving import save, wait_until_saved

__all__ = [
    "latest",
    "load",
    "load_orbax",
    "load_safetensors",
    "save",
    "save_safetensors",
    "wait_until_saved",
]
