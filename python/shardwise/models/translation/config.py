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
from ...errors import DTypeError, ShapeError, described
from ..configs import MoEConfig, check_number, message, papers_layer, positive

__all__ = ["TranslationConfig", "check_config", "configs", "float_dtype"]


def check_config(what: str, config: Any) -> None:
    """Raise TypeError unless it is a configuration."""
    if not isinstance(config, TranslationConfig):
        raise TypeError(message(what, "config must be a TranslationConfig", described(config)))


def float_dtype(what: str, name: str, value: Any) -> np.dtype[Any]:
    """The dtype that ``value`` names. Raise DTypeError unless it is a floating one."""
    try:
        dtype: np.dtype[Any] = np.dtype(value)
    except TypeError:
        dtype = np.dtype(np.bool_)
    if value is None or not is_float(dtype):
        raise DTypeError(message(what, f"{name} must be a floating dtype", repr(value)))
    return dtype


@dataclass(frozen=True)
class TranslationConfig:
    """The configuration of an encoder-decoder Transformer. Every other feed-forward layer is an MoE layer.

    Attributes:
        layers: the layers of encoder and decoder together: half of them each, in pairs of a dense layer and one of
            experts. A multiple of 4.
        moe: the configuration of the MoE layers; the dense layers have the same sizes.
        dense_hidden_dim: makes a model without experts: the second layer of each pair is dense, too, with this many
            hidden units. ``moe.top_k * moe.hidden_dim`` computes as much for a token as its experts do. None: experts.
        heads, head_dim: the number and the size of attention heads.
        source_vocabulary, target_vocabulary: the numbers of different tokens.
        source_length, target_length: the largest numbers of tokens of a sentence.
        dropout: the share of elements that dropout sets to zero: of inputs, residuals and attention weights.
        label_smoothing: as ``smoothing`` of :func:`shardwise.models.cross_entropy`.
        tied: whether the table of the target's embedding is also the last layer.
        aux_weight: the contribution of the auxiliary loss under even load of the experts.
        decoding_capacity_factor: how decoding routes new tokens to experts. None: the new tokens of a sentence are a
            group, with room for all of them in every expert. No new token is dropped, and no sentence changes how
            those of another one are routed, but each has as many slots as there are experts. A number: the new tokens
            of all sentences of a device are a group, with a capacity from this factor, as in training. Full experts
            drop tokens, and which ones depends on the batch and the devices. The encoder always routes as in training.
        activations: the dtype of activations, and of weights where they enter a product; None for the dtype of the
            weights. ``"bfloat16"`` with float32 weights is mixed precision: norms, softmaxes, the loss and the update
            stay in float32, and a weight that is gathered for a product is gathered in bfloat16. :func:`precision`
            reports the dtypes.
        pad, bos, eos: the tokens of padding, of the start, and of the end of a sentence: three different ones. ``pad``
            and ``eos`` are in both vocabularies, ``bos`` is in the target's.

    Raises:
        ShapeError: a size below 1, or layers that are no multiple of 4. ValueError: a rate outside of [0, 1), a
            negative weight, a factor that is not positive, or wrong special tokens. DTypeError: ``activations`` is no
            floating dtype. TypeError: ``moe`` is no MoEConfig.

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
    decoding_capacity_factor: float | None = None
    activations: str | None = None
    dense_hidden_dim: int | None = None
    pad: int = 0
    bos: int = 1
    eos: int = 2

    def __post_init__(self) -> None:
        what = "TranslationConfig"
        names = ("layers", "heads", "head_dim", "source_vocabulary", "target_vocabulary")
        positive(what, **{name: getattr(self, name) for name in (*names, "source_length", "target_length")})
        if not isinstance(self.moe, MoEConfig):
            raise TypeError(message(what, "moe must be a MoEConfig", described(self.moe)))
        if self.dense_hidden_dim is not None:
            positive(what, dense_hidden_dim=self.dense_hidden_dim)
        if self.layers % 4:
            way_out = f"use {max(4, 4 * round(self.layers / 4))}"
            raise ShapeError(message(what, "layers must be a multiple of 4", self.layers, way_out))
        for name in ("dropout", "label_smoothing"):
            check_number(what, name, getattr(self, name), "must be from 0 to below 1", lambda x: 0 <= x < 1)
        check_number(what, "aux_weight", self.aux_weight, "must not be negative", lambda x: 0 <= x < math.inf)
        if self.decoding_capacity_factor is not None:
            name, factor = "decoding_capacity_factor", self.decoding_capacity_factor
            check_number(what, name, factor, "must be a positive number", lambda x: 0 < x < math.inf)
        self._check_special_tokens()
        if self.activations is not None:
            float_dtype(what, "activations", self.activations)

    def _check_special_tokens(self) -> None:
        what, both = "TranslationConfig", min(self.source_vocabulary, self.target_vocabulary)
        for name, size in (("pad", both), ("bos", self.target_vocabulary), ("eos", both)):
            token = getattr(self, name)
            if isinstance(token, bool) or not isinstance(token, (int, np.integer)) or not 0 <= token < size:
                where = "the target's vocabulary" if name == "bos" else "both vocabularies"
                rule = f"{name} must be a token of {where}, from 0 to {size - 1}"
                raise ValueError(message(what, rule, repr(token)))
        if len({self.pad, self.bos, self.eos}) < 3:
            got = f"{self.pad}, {self.bos} and {self.eos}"
            raise ValueError(message(what, "pad, bos and eos must be three different tokens", got))

    @classmethod
    def gshard(cls, experts: int, layers: int, length: int = 128, **options: Any) -> TranslationConfig:
        """A model of the paper's table 1, with the sizes of appendix A.2.

        Args:
            experts: the experts of an MoE layer (E).
            layers: the layers of encoder and decoder.
            length: the largest number of tokens of a sentence, which the paper does not state.
            options: other fields of the configuration. ``moe`` defaults to groups of whole sentences with about as many
                tokens as experts, which fill two slots of each: 2,048 tokens for 2,048 experts.
                ``decoding_capacity_factor`` defaults to the capacity factor of ``moe``.
        """
        moe = options.pop("moe", None) or papers_layer(experts, length)
        options.setdefault("decoding_capacity_factor", getattr(moe, "capacity_factor", None))
        sizes = {"heads": 16, "head_dim": 128, "source_vocabulary": 64000, "target_vocabulary": 32000}
        return cls(layers, moe, **{**sizes, "source_length": length, "target_length": length, **options})

    @property
    def pairs(self) -> int:
        """The pairs of a dense layer and a layer of experts, in the encoder and in the decoder alike."""
        return self.layers // 4

    @property
    def pair_names(self) -> tuple[str, str]:
        """The names of the two layers of a pair in the tree of parameters."""
        return ("dense", "moe" if self.dense_hidden_dim is None else "wide")

    @property
    def moe_layers(self) -> int:
        """The number of MoE layers: L/2, or 0 with ``dense_hidden_dim``."""
        return 2 * self.pairs if self.dense_hidden_dim is None else 0

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
            "dense": 2 * self.pairs * 2 * width * (moe.hidden_dim + (self.dense_hidden_dim or 0)),
            "attention": 3 * half * 4 * width * self.heads * self.head_dim,
            "norms": (5 * half + 2) * 2 * width,
            "tables": tables * width,
            "positions": (self.source_length + self.target_length) * width,
        }

    def parameter_bytes_per_device(self, devices: int, itemsize: int = 4) -> int:
        """The bytes of parameters per device if ``devices`` devices split the experts and replicate the rest."""
        positive("parameter_bytes_per_device", devices=devices, itemsize=itemsize)
        counts = self.parameter_counts()
        experts = counts.pop("experts")
        if experts and self.moe.experts % devices:
            got = f"{devices} devices for {self.moe.experts} experts"
            raise ShapeError(message("parameter_bytes_per_device", "devices must divide the experts", got))
        return (experts // devices + sum(counts.values())) * itemsize

    def expert_flops_per_token(self) -> int:
        """The flops of one MoE layer's experts for a token that fills ``top_k`` slots: ``top_k · 4MH``.

        With ``dense_hidden_dim``, those of the dense layer in its place.
        """
        return 4 * self.moe.model_dim * (self.dense_hidden_dim or self.moe.top_k * self.moe.hidden_dim)


configs = {
    "600B": TranslationConfig.gshard(2048, 36),
    "200B": TranslationConfig.gshard(2048, 12),
    "150B": TranslationConfig.gshard(512, 36),
    "50B": TranslationConfig.gshard(512, 12),
    "37B": TranslationConfig.gshard(128, 36),
    "12.5B": TranslationConfig.gshard(128, 12),
    "1T": TranslationConfig.gshard(2048, 60, activations="bfloat16"),
}
