# SPDX-License-Identifier: Apache-2.0
"""The sizes of the translation model, and the seven configurations of the paper.

>>> config = configs["600B"]
>>> config.layers, config.moe_layers * config.moe.experts
(36, 36864)
>>> round(sum(config.parameter_counts().values()) / 1e9, 1)
619.4
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtypes import is_float
from ...errors import DTypeError, ShapeError
from ..configs import MoEConfig, message, positive

__all__ = ["TranslationConfig", "configs"]


@dataclass(frozen=True)
class TranslationConfig:
    """The configuration of an encoder-decoder Transformer. Every other feed-forward layer is an MoE layer.

    Attributes:
        layers: the layers of encoder and decoder together: half of them each, in pairs of a dense layer and one of
            experts. A multiple of 4.
        moe: the configuration of the MoE layers; the dense layers have the same sizes.
        heads, head_dim: the number and the size of attention heads.
        source_vocabulary, target_vocabulary: the numbers of different tokens.
        source_length, target_length: the largest numbers of tokens of a sentence.
        dropout: the share of elements that dropout sets to zero: of inputs, residuals and attention weights.
        label_smoothing: as ``smoothing`` of :func:`shardwise.models.cross_entropy`.
        tied: whether the table of the target's embedding is also the last layer.
        aux_weight: the contribution of the auxiliary loss under even load of the experts.
        activations: the dtype of activations, and of weights where they enter a product; None for the dtype of the
            weights. ``"bfloat16"`` with float32 weights is mixed precision: norms, softmaxes, the loss and the update
            stay in float32, and a weight that is gathered for a product is gathered in bfloat16.
        pad, bos, eos: the tokens of padding, of the start, and of the end of a sentence.

    Raises:
        ShapeError: a size below 1, or layers that are no multiple of 4. ValueError: a rate outside of [0, 1), or a
            negative weight. DTypeError: ``activations`` is no floating dtype.

    Source: GShard, section 4.3 and appendix A.2.
    """

    layers: int
    moe: MoEConfig
    heads: int = 4
    head_dim: int = 8
    source_vocabulary: int = 256
    target_vocabulary: int = 256
    source_length: int = 64
    target_length: int = 64
    dropout: float = 0.1
    label_smoothing: float = 0.0
    tied: bool = False
    aux_weight: float = 0.01
    activations: str | None = None
    pad: int = 0
    bos: int = 1
    eos: int = 2

    def __post_init__(self) -> None:
        what = "TranslationConfig"
        names = ("layers", "heads", "head_dim", "source_vocabulary", "target_vocabulary")
        positive(what, **{name: getattr(self, name) for name in (*names, "source_length", "target_length")})
        if self.layers % 4:
            way_out = f"use {max(4, 4 * round(self.layers / 4))}"
            raise ShapeError(message(what, "layers must be a multiple of 4", self.layers, way_out))
        for name in ("dropout", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(message(what, f"{name} must be from 0 to below 1", repr(getattr(self, name))))
        if not (math.isfinite(self.aux_weight) and self.aux_weight >= 0):
            raise ValueError(message(what, "aux_weight must not be negative", repr(self.aux_weight)))
        if self.activations is not None and not is_float(np.dtype(self.activations)):
            raise DTypeError(message(what, "activations must be a floating dtype", repr(self.activations)))

    @classmethod
    def gshard(cls, experts: int, layers: int, length: int = 128, **options: Any) -> TranslationConfig:
        """A model of the paper's table 1, with the sizes of appendix A.2.

        Args:
            experts: the experts of an MoE layer (E).
            layers: the layers of encoder and decoder.
            length: the largest number of tokens of a sentence, which the paper does not state.
            options: other fields of the configuration. ``moe`` defaults to groups of the smallest size that is a
                multiple of ``length`` and fills two slots of each expert: 2,048 tokens for 2,048 experts.
        """
        # C = 2S/E is 2 for S = E; smaller groups would leave slots empty, for which D < S stands in section 3.1.
        size = length * max(1, math.ceil(experts / length))
        moe = options.pop("moe", MoEConfig(experts, 1024, 8192, group_size=size))
        sizes = {"heads": 16, "head_dim": 128, "source_vocabulary": 64000, "target_vocabulary": 32000}
        return cls(layers, moe, **{**sizes, "source_length": length, "target_length": length, **options})

    @property
    def pairs(self) -> int:
        """The pairs of a dense layer and a layer of experts, in the encoder and in the decoder alike."""
        return self.layers // 4

    @property
    def moe_layers(self) -> int:
        """The number of MoE layers: L/2."""
        return 2 * self.pairs

    def parameter_counts(self) -> dict[str, int]:
        """The number of parameters by kind: ``L/2 · E · 2MH`` in experts, and those that every device holds.

        Decoder layers have twice the attention of encoder layers. The paper's table 1 counts experts; its column of
        totals is rounded. Layer norms and positions, which the paper omits, are counted, too.
        """
        moe, width = self.moe, self.moe.model_dim
        matrices = 2 * width * moe.hidden_dim
        half = self.layers // 2
        tables = self.source_vocabulary + self.target_vocabulary * (1 if self.tied else 2)
        return {
            "experts": self.moe_layers * moe.experts * matrices,
            "gates": self.moe_layers * width * moe.experts,
            "dense": (self.layers - self.moe_layers) * matrices,
            "attention": 3 * half * 4 * width * self.heads * self.head_dim,
            "norms": (5 * half + 2) * 2 * width,
            "tables": tables * width,
            "positions": (self.source_length + self.target_length) * width,
        }

    def parameter_bytes_per_device(self, devices: int, itemsize: int = 4) -> int:
        """The bytes of parameters per device if ``devices`` devices split the experts and replicate the rest."""
        counts = self.parameter_counts()
        experts = counts.pop("experts")
        if self.moe.experts % devices:
            got = f"{devices} devices for {self.moe.experts} experts"
            raise ShapeError(message("parameter_bytes_per_device", "devices must divide the experts", got))
        return (experts // devices + sum(counts.values())) * itemsize

    def expert_flops_per_token(self) -> int:
        """The flops of one MoE layer's experts for a token that fills ``top_k`` slots: ``top_k · 4MH``."""
        return self.moe.top_k * 4 * self.moe.model_dim * self.moe.hidden_dim

    def precision(self, dtype: Any = np.float32) -> dict[str, str]:
        """The dtype of each kind of number, for weights of ``dtype``: what :attr:`activations` decides."""
        weights = np.dtype(dtype).name
        products = weights if self.activations is None else np.dtype(self.activations).name
        sums = weights if np.dtype(dtype).itemsize >= 4 else "float32"
        return {
            "weights, gradients and update": weights,
            "activations": products,
            "weights in products, and gathered for them": products,
            "norms, softmax, loss": sums,
        }


configs = {
    "600B": TranslationConfig.gshard(2048, 36),
    "200B": TranslationConfig.gshard(2048, 12),
    "150B": TranslationConfig.gshard(512, 36),
    "50B": TranslationConfig.gshard(512, 12),
    "37B": TranslationConfig.gshard(128, 36),
    "12.5B": TranslationConfig.gshard(128, 12),
    "1T": TranslationConfig.gshard(2048, 60, activations="bfloat16"),
}
