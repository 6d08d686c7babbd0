# SPDX-License-Identifier: Apache-2.0
"""Configurations of models: their sizes, and the mesh axes of their dims. Sizes are checked before tracing.

>>> config = MoEConfig(experts=8, model_dim=16, hidden_dim=32)
>>> config.capacity_for(16)
4
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ShapeError, ShardingError, composed, described, reworded
from ..recording.tracing import current_trace
from ..shardings.mesh import Mesh

__all__ = ["Axes", "MoEConfig", "TransformerConfig", "axes_of"]

AxisNames = str | tuple[str, ...] | None
MOST_SLOTS = 1.25  # times what the gate can fill
_NOT_THE_USERS = {__name__.split(".")[0], "contextlib", "dataclasses", "optree"}  # they call the models for a user


def message(subject: str, must_hold: str, got: object = None, way_out: str = "") -> str:
    """The text of an error at the line that called the models; lines of ops, in reports, are the models' own."""
    return composed(subject, must_hold, got, way_out, *users_line())


def users_line() -> tuple[str, int]:
    """The file and line that called the models."""
    frame = sys._getframe(1)
    # By module, not by file: a dataclass's generated __init__ has no file, but the globals of its class.
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_USERS:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


@contextmanager
def called_with(name: str) -> Iterator[None]:
    """Errors at a line of the models begin with ``name`` instead, and have the line that called the models."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text, has_place, _ = str(error).rpartition(" (at ")
        if not has_place:
            raise
        raise reworded(error, composed(name, text.partition(": ")[2], None, "", *users_line())) from None


@dataclass(frozen=True)
class Axes:
    """The mesh axes that split the dims of a model. None leaves a dim without an annotation.

    Attributes:
        groups: split the groups of tokens (G in Algorithm 2): data parallelism.
        experts: split the experts (E). With the same axes as ``groups``, an all-to-all changes one into the other.
        hidden: also split hidden units and attention heads: tensor parallelism inside an expert and a layer.

    >>> axes_of("x")
    Axes(groups='x', experts='x', hidden=None)
    """

    groups: AxisNames = None
    experts: AxisNames = None
    hidden: AxisNames = None

    def __post_init__(self) -> None:
        for field in ("groups", "experts", "hidden"):
            names = getattr(self, field)
            if isinstance(names, list):
                object.__setattr__(self, field, tuple(names))
            elif names is not None and not isinstance(names, (str, tuple)):
                raise ShardingError(message("Axes", f"{field} must be None, or names of axes", repr(names)))

    @property
    def annotated(self) -> bool:
        """Whether any dim has an annotation."""
        return any(axes is not None for axes in (self.groups, self.experts, self.hidden))


def mesh_of(x: Any) -> Mesh | None:
    """The mesh of the trace, or outside of :func:`shardwise.jit` that of ``x``; None without one."""
    trace = current_trace()
    return trace.mesh if trace is not None else getattr(getattr(x, "sharding", None), "mesh", None)


def devices_along(mesh: Mesh | None, axes: AxisNames) -> int:
    """The number of devices along mesh axes. An axis that the mesh lacks counts 1: it is the error of ``split``."""
    if mesh is None or axes is None:
        return 1
    return math.prod(mesh.shape.get(name, 1) for name in ((axes,) if isinstance(axes, str) else axes))


def axes_of(axes: Any) -> Axes:
    """``axes``, or one name or tuple of names as the axes of both groups and experts (Algorithm 2's D devices)."""
    if isinstance(axes, Axes):
        for names in (axes.groups, axes.experts, axes.hidden):
            _check_names(names)
        return axes
    if axes is not None and not isinstance(axes, str):
        if not isinstance(axes, (tuple, list)) or not all(isinstance(name, str) for name in axes):
            raise ShardingError(message("axes", "must be None, axis names, or Axes(...)", repr(axes)))
        axes = tuple(axes)
    _check_names(axes)
    return Axes(groups=axes, experts=axes)


def _check_names(axes: AxisNames) -> None:
    """Raise ShardingError unless the mesh of the trace has these axes."""
    trace = current_trace()
    mesh = None if trace is None else trace.mesh
    for name in (axes,) if isinstance(axes, str) else axes or ():
        if mesh is not None and name not in mesh.shape:
            way_out = "use one of " + ", ".join(f'"{axis}"' for axis in mesh.shape)
            rule = f"an axis must be of mesh @{mesh.name}"
            raise ShardingError(message("split", rule, f'"{name}"', way_out))


def positive(what: str, **sizes: Any) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ShapeError(message(what, f"{name} must be an integer of at least 1", repr(size)))


def check_number(what: str, name: str, value: Any, must_hold: str, holds: Callable[[float], bool]) -> None:
    """Raise TypeError unless ``value`` is a real number, and ValueError unless it ``holds``: ``name must_hold``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(message(what, f"{name} must be a number", described(value)))
    if not holds(float(value)):
        raise ValueError(message(what, f"{name} {must_hold}", repr(value)))


def is_not_negative(value: float) -> bool:
    """Whether a number is 0 or above; inf, too, but not NaN."""
    return value >= 0


def _check_choice(what: str, name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(message(what, f"{name} must be {' or '.join(map(repr, known))}", repr(value)))


def check_dispatch(what: str, dispatch: Any) -> None:
    """Raise ValueError unless it is a way of dispatching tokens."""
    _check_choice(what, "dispatch", dispatch, ("einsum", "gather"))


@dataclass(frozen=True)
class MoEConfig:
    """The configuration of a Mixture-of-Experts layer.

    Attributes:
        experts: the number of experts, which are feed-forward networks (E).
        model_dim: the width of a token (M).
        hidden_dim: the width inside an expert (H).
        top_k: the number of experts per token: 2 (GShard) or 1 (Switch Transformer).
        capacity_factor: the capacity of an expert for one group, in multiples of its fair share ``top_k * S / E``.
        capacity: the capacity in tokens (C). None computes it from the factor.
        group_size: the number of tokens that the gate routes together (S). :func:`moe_layer` reshapes its tokens into
            groups of this size. None: each row of its input is a group.
        gate: ``"gshard"`` is Algorithm 1. ``"lingvo"`` is the gate of the paper's framework: a rejected second expert
            takes no slot, the capacity is a multiple of 4, and the auxiliary loss is multiplied by E².
        dispatch: ``"einsum"`` multiplies tokens with one-hot masks (Algorithm 2, line 3); ``"gather"`` reads them by
            index in a manual region (section 3.2), without any flops.

    Raises:
        ShapeError: a size below 1, or fewer experts than ``top_k``.
        ValueError: another ``top_k``, ``gate`` or ``dispatch``, or a factor that is not positive.

    Source: GShard, sections 2.2 and 3.2.
    """

    experts: int
    model_dim: int
    hidden_dim: int
    top_k: int = 2
    capacity_factor: float = 1.0
    capacity: int | None = None
    group_size: int | None = None
    gate: str = "gshard"
    dispatch: str = "einsum"

    def __post_init__(self) -> None:
        what = "MoEConfig"
        positive(what, experts=self.experts, model_dim=self.model_dim, hidden_dim=self.hidden_dim)
        if self.capacity is not None:
            positive(what, capacity=self.capacity)
        if self.group_size is not None:
            positive(what, group_size=self.group_size)
        _check_choice(what, "gate", self.gate, ("gshard", "lingvo"))
        check_dispatch(what, self.dispatch)
        if self.top_k not in (1, 2):
            raise ValueError(message(what, "top_k must be 1 or 2", repr(self.top_k)))
        if self.experts < self.top_k:
            way_out = "use more experts, or top_k=1"
            raise ShapeError(message(what, f"experts must be at least top_k, {self.top_k}", self.experts, way_out))
        is_positive = lambda x: 0 < x < math.inf  # noqa: E731
        check_number(what, "capacity_factor", self.capacity_factor, "must be a positive number", is_positive)

    def capacity_for(self, group_size: int) -> int:
        """The capacity of an expert for one group: ``ceil(top_k * group_size / experts * factor)``, or ``capacity``.

        The gate of Lingvo rounds the first one up to a multiple of 4.
        """
        positive("capacity_for", group_size=group_size)
        if self.capacity is not None:
            return self.capacity
        # The product with the factor may be a hair above a whole number: 1.1 * 10 is 11.000000000000002.
        fair = max(1, math.ceil(round(self.top_k * group_size * self.capacity_factor / self.experts, 9)))
        return fair if self.gate == "gshard" else -(-fair // 4) * 4

    def slots_per_token(self, group_size: int) -> float:
        """The slots that a group has for each of its tokens: ``experts * capacity / group_size``.

        A token fills at most ``top_k`` of them. Expert flops and all-to-all bytes grow with all slots, filled or not.
        """
        return self.experts * self.capacity_for(group_size) / group_size

    def has_empty_slots(self, group_size: int) -> bool:
        """Whether a token has more than 1.25 times the slots that the capacity factor asks for."""
        return self.slots_per_token(group_size) > MOST_SLOTS * self.top_k * self.capacity_factor

    @property
    def aux_factor(self) -> float:
        """The number that makes the auxiliary loss 1 under even load: E², or 1 for the gate of Lingvo."""
        return float(self.experts**2) if self.gate == "gshard" else 1.0

    def check_mesh(self, mesh: Mesh | None, axes: Axes) -> None:
        """Raise ShapeError if the devices along ``axes.experts`` do not divide the experts."""
        if mesh is None or axes.experts is None:
            return
        names = (axes.experts,) if isinstance(axes.experts, str) else axes.experts
        devices = devices_along(mesh, axes.experts)
        if self.experts % devices:
            raise ShapeError(
                message(
                    "moe_layer",
                    f"experts must be a multiple of the {devices} devices along {', '.join(map(repr, names))}",
                    self.experts,
                    f"use {devices * max(1, round(self.experts / devices))} experts, or fewer axes for them",
                )
            )


def papers_layer(experts: int, length: int, **options: Any) -> MoEConfig:
    """The MoE layer of appendix A.2, with groups of whole sequences whose tokens fill its slots.

    C = 2S/E is 2 for S = E; smaller groups would leave slots empty, for which D < S stands in section 3.1. Where
    ``length`` does not divide E, the group is the first multiple of it from there on without many empty slots.

    >>> papers_layer(2048, 128).group_size, papers_layer(2048, 100).group_size
    (2048, 2000)
    """
    layer = MoEConfig(experts, 1024, 8192, **options)
    positive("gshard", length=length)
    if "group_size" in options or layer.capacity is not None:
        return layer
    sizes = itertools.count(length * max(1, experts // length), length)
    return replace(layer, group_size=next(size for size in sizes if not layer.has_empty_slots(size)))


@dataclass(frozen=True)
class TransformerConfig:
    """The configuration of a decoder that predicts the next token. Every other feed-forward layer is an MoE layer.

    Attributes:
        layers: the number of pairs of attention and feed-forward. The last pair has an MoE layer, and so does every
            second pair before it.
        moe: the configuration of the MoE layers; the dense layers have the same sizes.
        heads, head_dim: the number and the size of attention heads.
        vocabulary: the number of different tokens; 256 for bytes.
        length: the number of tokens in a sequence (S); each sequence is a group, unless
            ``moe.group_size`` sets another size.
        aux_weight: the contribution of the auxiliary loss under even load of the experts; uneven load adds more.
        causal: each token attends only to itself and to earlier tokens.

    Raises:
        ShapeError: a size below 1. ValueError: a negative weight.

    >>> big = TransformerConfig.gshard(experts=2048, layers=36)
    >>> big.moe_layers, big.parameter_counts()["experts"]
    (18, 618475290624)
    """

    layers: int
    moe: MoEConfig
    heads: int = 4
    head_dim: int = 8
    vocabulary: int = 256
    length: int = 64
    aux_weight: float = 0.01
    causal: bool = True

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("layers", "heads", "head_dim", "vocabulary", "length")}
        positive("TransformerConfig", **sizes)
        if not isinstance(self.moe, MoEConfig):
            raise TypeError(message("TransformerConfig", "moe must be a MoEConfig", described(self.moe)))
        is_weight = lambda x: 0 <= x < math.inf  # noqa: E731
        check_number("TransformerConfig", "aux_weight", self.aux_weight, "must not be negative", is_weight)

    @classmethod
    def gshard(
        cls, experts: int = 2048, layers: int = 36, length: int = 128, *, vocabulary: int = 32000, **moe: Any
    ) -> TransformerConfig:
        """A model of the paper's table 1: 600B is (2048, 36), 1T is (2048, 60). Other sizes follow appendix A.2.

        Args:
            experts: the experts of an MoE layer (E).
            layers: the layers.
            length: the number of tokens in a sequence, which the paper does not state.
            vocabulary: the number of different tokens.
            moe: other fields of the MoE layers' configuration. ``group_size`` defaults to groups of whole sequences
                with about as many tokens as experts, which fill two slots of each: 2,048 tokens for 2,048 experts.
        """
        layer = papers_layer(experts, length, **moe)
        return cls(layers, layer, heads=16, head_dim=128, vocabulary=vocabulary, length=length)

    def is_moe(self, layer: int) -> bool:
        """Whether the feed-forward part of this layer is an MoE layer."""
        return (self.layers - 1 - layer) % 2 == 0

    @property
    def aux_factor(self) -> float:
        """The factor of the auxiliary loss (k in section 2.2): ``aux_weight * E²``.

        The paper does not state k. Algorithm 1's loss is 1/E² under even load, so a constant k would fade with more
        experts; this one makes the term ``aux_weight`` under even load, for any number of experts.
        """
        return self.aux_weight * self.moe.aux_factor

    @property
    def moe_layers(self) -> int:
        """The number of MoE layers."""
        return (self.layers + 1) // 2

    def parameter_counts(self) -> dict[str, int]:
        """The number of parameters by kind: ``L/2 · E · 2MH`` in experts, and those that every device holds.

        Source: GShard, table 1 and appendix A.2, plus layer norms and positions, which the paper omits.
        """
        moe, width = self.moe, self.moe.model_dim
        matrices = 2 * width * moe.hidden_dim
        return {
            "experts": self.moe_layers * moe.experts * matrices,
            "gates": self.moe_layers * width * moe.experts,
            "dense": (self.layers - self.moe_layers) * matrices,
            "attention": self.layers * 4 * width * self.heads * self.head_dim,
            "norms": (2 * self.layers + 1) * 2 * width,
            "embedding": (self.vocabulary + self.length) * width,
        }

    def parameter_bytes_per_device(self, devices: int, itemsize: int = 4) -> int:
        """The bytes of parameters per device if ``devices`` devices split the experts and replicate the rest."""
        positive("parameter_bytes_per_device", devices=devices, itemsize=itemsize)
        counts = self.parameter_counts()
        experts = counts.pop("experts")
        if self.moe.experts % devices:
            got = f"{devices} devices for {self.moe.experts} experts"
            raise ShapeError(message("parameter_bytes_per_device", "devices must divide the experts", got))
        return (experts // devices + sum(counts.values())) * itemsize
