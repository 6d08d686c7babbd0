# SPDX-License-Identifier: Apache-2.0
"""GShard's translation model: an encoder-decoder Transformer, every other feed-forward layer of which has experts.

>>> import numpy as np
>>> from shardwise.models import MoEConfig, translation
>>> config = translation.TranslationConfig(4, MoEConfig(experts=4, model_dim=8, hidden_dim=16), target_length=6)
>>> params = translation.init(np.random.default_rng(0), config)
>>> source = np.array([[5, 6, 7, 2], [8, 9, 2, 0]])
>>> value, log = translation.loss(params, source, source, config)
>>> translation.flat_beam_search(params, source, config, beams=3).tokens.shape
(2, 3, 6)
"""

from __future__ import annotations

from .beams import beam_search, flat_beam_search
from .config import TranslationConfig, configs
from .model import decode, encode, translation
from .parameters import init, shapes
from .precision import precision
from .sampling import Translations, greedy, sample
from .training import init_state, loss, train_step

__all__ = [
    "TranslationConfig",
    "Translations",
    "beam_search",
    "configs",
    "decode",
    "encode",
    "flat_beam_search",
    "greedy",
    "init",
    "init_state",
    "loss",
    "precision",
    "sample",
    "shapes",
    "train_step",
    "translation",
]


def __dir__() -> list[str]:
    return sorted(__all__)
