# SPDX-License-Identifier: Apache-2.0
"""The translation model again, in JAX, without slots, masks of slots or loops over layers: its losses and gradients.

    python -m tests.models.translation_worker OUT.npz

A token's place in the room of its expert is the number of earlier tokens that chose the expert; a token reads the
weights of its experts. Everything is float64, and the step is plain gradient descent.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.models.translation_cases import TRAINED, first_params, training_batch

Params = Any


def normalised(p: Params, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-6) * p["scale"] + p["bias"]


def attention(p: Params, x: Any, memory: Any, visible: Any) -> Any:
    def head(query: Any, key: Any, value: Any, output: Any) -> Any:
        q, k, v = x @ query, memory @ key, memory @ value
        scores = jnp.where(visible, q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), -jnp.inf)
        return jax.nn.softmax(scores) @ v @ output

    return jax.vmap(head, in_axes=(1, 1, 1, 0))(p["query"], p["key"], p["value"], p["output"]).sum(0)


def places(expert: Any, counted: Any, before: Any = 0) -> Any:
    """For each token of a group, how many before it chose the same expert."""
    earlier = np.tril(np.ones((len(expert), len(expert)), bool), -1)
    return jnp.sum(earlier & (expert[:, None] == expert) & counted, axis=1) + before


def experts_of_group(p: Params, x: Any, counts: Any, capacity: int) -> tuple[Any, Any]:
    gates = jax.nn.softmax(x @ p["gate"])
    best = jnp.argsort(-gates, axis=1, stable=True)
    first, second = best[:, 0], best[:, 1]
    tokens = jnp.arange(len(x))
    g1, g2 = gates[tokens, first], gates[tokens, second]
    chosen = jnp.zeros(gates.shape[1]).at[first].add(counts)
    real = counts.sum()
    aux = jnp.mean(chosen / real * (gates * counts[:, None]).sum(0) / real)
    output = 0
    for expert, weight, before in ((first, g1, 0), (second, g2, chosen[second])):
        kept = counts & (places(expert, counts, before) < capacity)
        hidden = jax.nn.relu(jnp.einsum("sm,smh->sh", x, p["wi"][expert]))
        answer = jnp.einsum("sh,shm->sm", hidden, p["wo"][expert])
        output = output + jnp.where(kept, weight / (g1 + g2), 0)[:, None] * answer
    return output, aux


def moe(p: Params, x: Any, counts: Any) -> tuple[Any, Any]:
    size = TRAINED.moe.group_size
    groups, masks = x.reshape(-1, size, x.shape[-1]), counts.reshape(-1, size)
    one = lambda group, mask: experts_of_group(p, group, mask, TRAINED.moe.capacity_for(size))  # noqa: E731
    output, aux = jax.vmap(one)(groups, masks)
    return output.reshape(x.shape), jnp.mean(aux)


def half(
    p: Params, x: Any, counts: Any, causal: bool, memory: Any = None, memory_counts: Any = None
) -> tuple[Any, Any]:
    visible = counts[:, None, :]
    if causal:
        visible = visible & np.tril(np.ones((x.shape[1], x.shape[1]), bool))
    losses = []
    for i in range(TRAINED.pairs):
        for name in ("dense", "moe"):
            layer = jax.tree.map(lambda leaf: leaf[i], p["pairs"][name])  # noqa: B023
            y = normalised(layer["attention_norm"], x)
            x = x + attention(layer["attention"], y, y, visible)
            if memory is not None:
                y = normalised(layer["cross_norm"], x)
                x = x + attention(layer["cross"], y, memory, memory_counts[:, None, :])
            y = normalised(layer["norm"], x)
            if name == "dense":
                x = x + jax.nn.relu(y @ layer["dense"]["wi"]) @ layer["dense"]["wo"]
            else:
                answer, aux = moe(layer["moe"], y, counts)
                x = x + answer
                losses.append(aux)
    return normalised(p["norm"], x), sum(losses) / len(losses)


def loss(params: Params, source: Any, target: Any) -> Any:
    config = TRAINED
    shown = jnp.concatenate([jnp.full((len(target), 1), config.bos), target[:, :-1]], axis=1)
    x = params["source"]["table"][source] + params["source"]["positions"][: source.shape[1]]
    memory, aux1 = half(params["encoder"], x, source != config.pad, False)
    x = params["target"]["table"][shown] + params["target"]["positions"][: shown.shape[1]]
    x, aux2 = half(params["decoder"], x, shown != config.pad, True, memory, source != config.pad)
    log_probabilities = jax.nn.log_softmax(x @ params["output"].T)
    size = config.target_vocabulary
    wanted = (1 - config.label_smoothing) * jax.nn.one_hot(target, size) + config.label_smoothing / size
    losses = -(wanted * log_probabilities).sum(-1)
    counts = target != config.pad
    entropy = (losses * counts).sum() / counts.sum()
    return entropy + config.aux_weight * config.moe.experts**2 * (aux1 + aux2) / 2


def main(path: str) -> None:
    jax.config.update("jax_enable_x64", True)
    params, losses, arrays = first_params(), [], {}
    program = jax.jit(jax.value_and_grad(loss)).lower(params, *training_batch(0))
    value_and_grad = program.compile({"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True})
    for step in range(20):
        value, gradients = value_and_grad(params, *training_batch(step))
        losses.append(float(value))
        if step == 0:
            arrays |= {f"gradient/{i}": leaf for i, leaf in enumerate(jax.tree.leaves(gradients))}
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
    arrays |= {f"params/{i}": leaf for i, leaf in enumerate(jax.tree.leaves(params))}
    np.savez(path, losses=losses, **{name: np.asarray(leaf) for name, leaf in arrays.items()})


if __name__ == "__main__":
    main(sys.argv[1])
