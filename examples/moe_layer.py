# SPDX-License-Identifier: Apache-2.0
"""GShard's Mixture-of-Experts Transformer as a next-byte predictor of real text, on a virtual mesh.

One program for all devices: tokens are split by group, experts by expert, and two AllToAlls per layer lie between. It
is compared with the same functions in plain NumPy, then trained by SGD. With --no-run only shapes are compiled, by
default at the sizes of the paper: `--layers 36 --experts 2048 --devices 2048 --no-run` is its model of 600 billion
parameters, `--layers 60` that of a trillion.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import optree
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import shardwise as sw
from shardwise import models

CONSOLE = Console(width=110, highlight=False)
SHOWN_ROWS = 16
EXCHANGED = ("dispatched", "to_experts", "to_groups")  # models.moe_layer's own annotated values
MANY = 1 << 16  # groups times experts, above which a step takes seconds
MEASURED = (
    "ops_local", "collectives", "max_relative_difference", "routing_disagreements", "seconds_numpy", "seconds_virtual",
    "peak_bytes",
)  # fmt: skip
DTYPES = {"float32": np.float32, "float64": np.float64, "bfloat16": sw.bfloat16}


@dataclass(frozen=True)
class Setting:
    """The options: mesh, model and its layout."""

    mesh: sw.Mesh
    axes: models.Axes
    config: models.TransformerConfig
    groups: int
    dtype: Any
    seed: int
    steps: int
    rate: float

    @property
    def data_type(self) -> np.dtype:
        """The dtype of parameters and activations."""
        return np.dtype(self.dtype)


# ---- the program ----------------------------------------------------------------------------------------------------


def draws(setting: Setting, key: Any) -> Any:
    """The random numbers that decide which tokens go to their second expert too."""
    return sw.random.uniform(key, (setting.config.moe_layers, setting.groups, setting.config.length))


def forward(setting: Setting):
    """Logits, and how every layer of experts routed every token."""

    def forward(params, tokens, key):
        config, axes, random = setting.config, setting.axes, draws(setting, key)
        logits, _, statistics = models.transformer(params, tokens, config, axes=axes, random=random)
        kept = ("experts", "kept", "dropped", "tokens_per_expert")
        routing = [{name: found[name] for name in kept} for found in statistics]
        return logits, routing

    return forward


def sgd_step(setting: Setting):
    """One step of training: the loss, how many tokens of each group each expert took, new parameters."""

    def step(params, tokens, key, rate):
        random = draws(setting, key)

        def loss(params):
            return models.next_token_loss(params, tokens, setting.config, axes=setting.axes, random=random)

        (value, parts), gradients = sw.value_and_grad(loss, has_aux=True)(params)
        return value, parts["tokens_per_expert"], optree.tree_map(lambda p, g: p - rate * g, params, gradients)

    return step


# ---- text -----------------------------------------------------------------------------------------------------------


def read_text(path: str | None) -> bytes:
    """The bytes of a file, or of the help texts that Python's standard library ships."""
    return "\n".join(topics.values()).encode() if path is None else Path(path).read_bytes()


def batch(text: bytes, groups: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """``groups`` pieces of ``length + 1`` bytes from random places of the text."""
    data = np.frombuffer(text, np.uint8)
    starts = rng.integers(0, len(data) - length, groups)
    return data[starts[:, None] + np.arange(length + 1)].astype(np.int32)


# ---- tables ---------------------------------------------------------------------------------------------------------


def show_arrays(setting: Setting, program: sw.Program, shapes: Any) -> None:
    """Every parameter once per shape and sharding, as annotations and propagation left it; what experts exchange."""
    names = [accessor.codify("") for accessor in optree.tree_accessors(shapes)]
    kinds = Counter()
    for name, leaf, sharding in zip(names, optree.tree_leaves(shapes), program.input_shardings):
        kind = (name.split("[")[-1].strip("']"), tuple(leaf.shape), str(sharding.spec))
        kinds[kind] += 1
    table = Table("array", "shape", "sharding", "arrays", title="annotated arrays", box=box.SIMPLE)
    for (name, shape, spec), count in kinds.items():
        table.add_row(name, str(shape), spec, str(count))
    for name in EXCHANGED:
        values = Counter((value.type, value.sharding) for value in program.why(name).values)
        for (kind, sharding), count in values.items():
            table.add_row(name, kind, sharding, str(count))
    CONSOLE.print(table)


def show_collectives(program: sw.Program, title: str) -> None:
    """Every collective with its reason; those of many layers in groups."""
    ledger = program.collectives()
    CONSOLE.print(f"{title}:")
    CONSOLE.print(ledger if len(ledger) <= SHOWN_ROWS else ledger.group_by("where", "kind", "axes", "cause"))


def show_routing(setting: Setting, routing: list[dict[str, Any]]) -> None:
    """How many tokens each expert took, and how many tokens no expert took."""
    moe = setting.config.moe
    room = setting.groups * moe.capacity_for(setting.config.length)
    table = Table(title=f"tokens per expert (room for {room})", box=box.SIMPLE)
    shown = moe.experts <= SHOWN_ROWS
    for column in ("layer", *(map(str, range(moe.experts)) if shown else ("least", "mean", "most")), "dropped"):
        table.add_column(column, justify="right")
    for layer, record in enumerate(routing):
        load = np.sum(record["tokens_per_expert"], axis=0)
        cells = load if shown else (load.min(), f"{load.mean():.1f}", load.max())
        table.add_row(str(layer), *map(str, cells), str(int(np.sum(np.asarray(record["dropped"])))))
    CONSOLE.print(table)


# ---- comparison with NumPy ------------------------------------------------------------------------------------------


def timed(function: Any, *args: Any) -> tuple[Any, float]:
    """The result, and the least seconds of up to five calls; of one where a call takes long."""
    best, result = math.inf, None
    for _ in range(5):
        start = time.perf_counter()
        result = function(*args)
        best = min(best, time.perf_counter() - start)
        if best > 1:
            break
    return result, best


def relative_difference(logits: Any, expected: Any, same: np.ndarray) -> float:
    """The largest difference of any logit of these tokens, in units of the largest logit."""
    return float(np.max(np.abs(logits - expected), where=same[..., None], initial=0) / np.max(np.abs(expected)))


def plain_margins(setting: Setting, params: Any, tokens: np.ndarray, key: Any) -> list[np.ndarray]:
    """The gate margins of plain NumPy's run, a layer of experts at a time."""
    random = draws(setting, key)
    _, _, statistics = models.transformer(params, tokens, setting.config, random=random)
    return [np.asarray(models.gate_margins(found, draw)) for found, draw in zip(statistics, random)]


def run_forward(setting: Setting, params: Any, tokens: np.ndarray, key: Any, report: dict[str, Any]) -> np.ndarray:
    """Run the forward pass on the mesh and in NumPy; print and record times and differences; return the load."""
    function = forward(setting)
    jitted = sw.jit(function, mesh=setting.mesh)
    program = jitted.lower(params, tokens, key).compile()
    show_arrays(setting, program, params)
    show_collectives(program, "communication of the forward pass")
    CONSOLE.print(repr(program.why("to_experts")), markup=False, soft_wrap=True)
    (virtual, seconds_virtual) = timed(lambda: optree.tree_map(np.asarray, jitted(params, tokens, key)))
    report["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    plain, seconds_numpy = timed(function, params, tokens, key)
    routing = models.compare_routing(virtual[1], plain[1], lambda: plain_margins(setting, params, tokens, key))
    same = routing.same
    if setting.config.moe_layers > 1:  # later tokens attend to earlier ones
        same = np.logical_and.accumulate(same, axis=1)
    difference = relative_difference(virtual[0], plain[0], same)
    report |= {
        "ops_local": program.op_count,
        "collectives": program.collectives().to_dict(),
        "max_relative_difference": difference,
        "routing_disagreements": routing.disagreements,
        "largest_margin": routing.largest_margin,
        "seconds_numpy": seconds_numpy,
        "seconds_virtual": seconds_virtual,
    }
    show_routing(setting, virtual[1])
    table = Table(title="forward pass", box=box.SIMPLE, show_header=False)
    table.add_row("plain NumPy", f"{seconds_numpy * 1e3:.1f} ms")
    table.add_row(f"{setting.mesh.size} virtual devices", f"{seconds_virtual * 1e3:.1f} ms")
    table.add_row("largest difference, of the largest logit", f"{difference:.1e}")
    table.add_row("tokens routed otherwise", f"{routing.disagreements} of {tokens.size}")
    if routing.disagreements:
        table.add_row("largest gate margin of those", f"{routing.largest_margin:.1e}")
    CONSOLE.print(table)
    return total_load([record["tokens_per_expert"] for record in virtual[1]])


def total_load(counts: list[Any]) -> np.ndarray:
    """Tokens per expert of all groups and layers, from those of each layer (G, E)."""
    return np.sum([np.sum(np.asarray(count), axis=0) for count in counts], axis=0)


# ---- training -------------------------------------------------------------------------------------------------------


def train(setting: Setting, params: Any, text: bytes, report: dict[str, Any]) -> np.ndarray:
    """Train by SGD, record the losses, return the last step's tokens per expert, all layers together."""
    steps = setting.steps
    rng = np.random.default_rng(setting.seed + 1)
    step = sw.jit(sgd_step(setting), mesh=setting.mesh)
    keys = sw.random.split(sw.random.key(setting.seed + 1), steps)
    rate = setting.data_type.type(setting.rate)
    load: list[Any] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    start = time.perf_counter()
    with Progress(*columns, console=CONSOLE) as progress:
        task = progress.add_task("training", total=steps)
        for i in range(steps):
            tokens = batch(text, setting.groups, setting.config.length, rng)
            if i == 0:
                show_collectives(step.lower(params, tokens, keys[i], rate).compile(), "communication of a step")
            value, load, params = step(params, tokens, keys[i], rate)
            report["losses"].append(float(value))
            progress.update(task, advance=1, description=f"training, loss {report['losses'][-1]:.3f}")
    report["seconds_training"] = time.perf_counter() - start
    tenth = max(1, steps // 10)
    first, last = (float(np.mean(piece)) for piece in (report["losses"][:tenth], report["losses"][-tenth:]))
    CONSOLE.print(f"{steps} steps in {report['seconds_training']:.1f} s: loss {first:.3f} at first, {last:.3f} at last")
    return total_load(load)


def plot(setting: Setting, load: np.ndarray, losses: list[float], path: str) -> None:
    """A picture of the mesh, of the load of the experts, and of the loss."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), constrained_layout=True)
    devices = setting.mesh.devices.reshape(setting.mesh.axis_sizes[0], -1)
    if devices.shape[1] == 1 and len(devices) > SHOWN_ROWS:  # a long axis as a block
        width = next(w for w in range(math.isqrt(len(devices)), len(devices) + 1) if len(devices) % w == 0)
        devices = devices.reshape(-1, width)
    left.imshow(devices, cmap="viridis")
    if devices.size <= 64:
        for (row, column), device in np.ndenumerate(devices):
            left.text(column, row, str(device), ha="center", va="center", color="white")
    left.set(title=f"devices of {setting.mesh!r}", xticks=[], yticks=[])
    left.title.set_fontsize(9)
    room = setting.groups * setting.config.moe.capacity_for(setting.config.length) * setting.config.moe_layers
    middle.bar(np.arange(len(load)), load)
    middle.axhline(room, color="red", linewidth=1, label="room")
    middle.set(title="tokens per expert", xlabel="expert")
    middle.legend()
    right.plot(losses)
    right.set(title="loss", xlabel="step")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    CONSOLE.print(f"written: {path}")


# ---- shapes only ----------------------------------------------------------------------------------------------------


def compile_only(setting: Setting, report: dict[str, Any]) -> None:
    """Compile the training step from shapes, without any data, and say what a device would hold."""
    config, struct = setting.config, sw.ShapeDtypeStruct
    shapes = models.transformer_shapes(config, setting.dtype)
    tokens = struct((setting.groups, config.length + 1), np.int32)
    key = sw.random.key(0)
    args = (shapes, tokens, struct(key.shape, key.dtype), struct((), setting.dtype))
    start = time.perf_counter()
    traced = sw.jit(sgd_step(setting), mesh=setting.mesh).trace(*args)
    traced_at = time.perf_counter()
    program = traced.lower().compile()
    done = time.perf_counter()
    leaves = optree.tree_leaves(shapes)
    on_device = sum(
        math.prod(sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
        for leaf, sharding in zip(leaves, program.input_shardings)
    )
    devices = setting.mesh.size if setting.axes.hidden is None else None
    formula = devices and config.parameter_bytes_per_device(devices, setting.data_type.itemsize)
    counts = config.parameter_counts()
    show_arrays(setting, program, shapes)
    show_collectives(program, "communication of a training step")
    report |= {
        "ops_local": program.op_count,
        "ops_global": program.as_text("global").count("\n"),
        "collectives": program.collectives().to_dict(),
        "seconds_trace": traced_at - start,
        "seconds_compile": done - traced_at,
        "parameters": sum(counts.values()),
        "parameter_bytes_per_device": on_device,
        "parameter_bytes_formula": formula,
    }
    table = Table(title="training step, from shapes", box=box.SIMPLE, show_header=False)
    table.add_row("parameters", f"{sum(counts.values()) / 1e9:,.1f} billion, {counts['experts'] / 1e9:,.1f} in experts")
    table.add_row("parameters of one device", f"{on_device / 2**20:,.1f} MiB")
    table.add_row("by the paper's formula", "-" if formula is None else f"{formula / 2**20:,.1f} MiB")
    table.add_row("trace", f"{report['seconds_trace']:.2f} s")
    table.add_row("propagate, partition", f"{report['seconds_compile']:.2f} s")
    table.add_row("ops of the program of one device", f"{program.op_count:,}")
    CONSOLE.print(table)


# ---- options --------------------------------------------------------------------------------------------------------


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--devices", type=int, help="virtual devices (8, or those of --mesh)")
    add("--mesh", help="axes and sizes, such as data=4,model=2; tokens and experts are split over all of them")
    add("--hidden-axis", metavar="AXIS", help="this axis of the mesh splits hidden units and heads instead")
    add("--experts", type=int, help="experts of a layer (as many as devices)")
    add("--groups", type=int, help="sequences of a step, the groups of the gate (as many as devices)")
    add(
        "--tokens",
        type=int,
        help="tokens of a sequence (32; 8 with many groups and experts; as many as experts with --no-run)",
    )
    add("--capacity-factor", type=float, default=1.25, help="room of an expert, in fair shares (1.25)")
    add("--capacity", type=int, help="room of an expert for one group, in tokens, instead of the factor")
    add("--top-k", type=int, default=2, help="experts of a token: 1 or 2 (2)")
    add("--layers", type=int, default=2, help="layers, every other one with experts (2)")
    add("--model-dim", type=int, help="width of a token (32; 1024 with --no-run)")
    add("--hidden-dim", type=int, help="width inside an expert (four times the model's; 8192 with --no-run)")
    add("--heads", type=int, help="heads of attention (4; 16 of 128 with --no-run)")
    add("--steps", type=int, help="steps of training (300; none with many groups and experts)")
    add("--rate", type=float, default=0.5, help="SGD's learning rate (0.5)")
    add("--text", metavar="FILE", help="what to learn (the help texts of Python's standard library)")
    add("--dtype", choices=sorted(DTYPES), default="float32", help="of parameters; bfloat16 needs --no-run")
    add("--seed", type=int, default=0)
    add("--no-run", action="store_true", help="compile the training step from shapes alone")
    add("--json", metavar="FILE", help="write what was measured")
    add("--plot", metavar="FILE.png", help="draw mesh, load of the experts, and loss")
    return parser


def mesh_of(args: argparse.Namespace) -> sw.Mesh:
    """The mesh that --mesh and --devices describe. Raises ValueError when they contradict each other."""
    if args.mesh is None:
        return sw.Mesh({"device": 8 if args.devices is None else args.devices})
    sizes = {}
    for part in args.mesh.split(","):
        name, equals, size = part.partition("=")
        if not equals or not size.isdigit() or name in sizes:
            raise ValueError(f"--mesh must be like data=4,model=2, with each name once, got {args.mesh!r}")
        sizes[name] = int(size)
    mesh = sw.Mesh(sizes)
    if args.devices not in (None, mesh.size):
        raise ValueError(f"--mesh {args.mesh} has {mesh.size} devices, got --devices {args.devices}; leave one out")
    return mesh


def setting_of(args: argparse.Namespace) -> Setting:
    """What the options say. Raises ValueError for what does not fit together."""
    mesh = mesh_of(args)
    paper = args.no_run
    if args.hidden_axis is not None and args.hidden_axis not in mesh.axis_names:
        raise ValueError(f"--hidden-axis must be one of {', '.join(mesh.axis_names)}, got {args.hidden_axis}")
    outer = tuple(name for name in mesh.axis_names if name != args.hidden_axis)
    if not outer:
        raise ValueError("--hidden-axis must leave an axis for tokens and experts; use --mesh with two axes")
    axes = models.Axes(groups=outer, experts=outer, hidden=args.hidden_axis)
    model_dim = (1024 if paper else 32) if args.model_dim is None else args.model_dim
    hidden_dim = (8192 if paper else 4 * model_dim) if args.hidden_dim is None else args.hidden_dim
    experts = mesh.size if args.experts is None else args.experts
    heads = (16 if paper else 4) if args.heads is None else args.heads
    moe = models.MoEConfig(experts, model_dim, hidden_dim, args.top_k, args.capacity_factor, args.capacity)
    moe.check_mesh(mesh, axes)
    head_dim = 128 if paper else max(1, model_dim // max(heads, 1))
    groups = mesh.size if args.groups is None else args.groups
    many = groups * experts > MANY
    # As many tokens as experts: two slots for each token, which the top-2 gate fills.
    length = (max(128, experts) if paper else 8 if many else 32) if args.tokens is None else args.tokens
    steps = (0 if many else 300) if args.steps is None else args.steps
    vocabulary = 32000 if paper else 256
    config = models.TransformerConfig(args.layers, moe, heads, head_dim, vocabulary=vocabulary, length=length)
    if groups < 1 or steps < 0:
        raise ValueError(f"--groups must be at least 1 and --steps at least 0, got {groups} and {steps}")
    if args.seed < 0:
        raise ValueError(f"--seed must be at least 0, got {args.seed}")
    if args.dtype == "bfloat16" and not args.no_run:
        raise ValueError("--dtype bfloat16 needs --no-run: NumPy, which results are compared with, has no einsum of it")
    return Setting(mesh, axes, config, groups, DTYPES[args.dtype], args.seed, steps, args.rate)


def check_files(args: argparse.Namespace) -> None:
    """Raises ValueError for options that --no-run has no use for, and for files that cannot be written at the end."""
    for name in ("steps", "text", "plot"):
        if args.no_run and getattr(args, name) is not None:
            raise ValueError(f"--{name} needs a run, got --no-run; leave one of the two out")
    for name in ("json", "plot"):
        path = getattr(args, name)
        if path is not None and not Path(path).resolve().parent.is_dir():
            raise ValueError(f"--{name} must be in a folder that exists, got {path}")


def main() -> None:
    parser = options()
    args = parser.parse_args()
    try:
        setting = setting_of(args)
        check_files(args)
        text = b"" if args.no_run else read_text(args.text)
        if not args.no_run and len(text) <= setting.config.length:
            needed = setting.config.length + 1
            raise ValueError(
                f"the text must have at least {needed} bytes, a sequence and the byte after it, got {len(text)}"
            )
    except (sw.errors.Error, ValueError, OSError) as error:
        parser.error(str(error))
    report: dict[str, Any] = dict.fromkeys(MEASURED)
    report |= {"devices": setting.mesh.size, "losses": []}
    moe, length = setting.config.moe, setting.config.length
    CONSOLE.rule(repr(setting.mesh))
    CONSOLE.print(
        f"{setting.config.layers} layers, {setting.config.moe_layers} of them with {moe.experts} experts of room "
        f"{moe.capacity_for(length)}; {setting.groups} groups of {length} tokens; width {moe.model_dim}, inside "
        f"{moe.hidden_dim}"
    )
    if args.no_run:
        compile_only(setting, report)
    else:
        rng = np.random.default_rng(setting.seed)
        params = models.init_transformer(rng, setting.config, setting.dtype)
        tokens = batch(text, setting.groups, length, rng)[:, :-1]
        load = run_forward(setting, params, tokens, sw.random.key(setting.seed), report)
        if setting.steps:
            load = train(setting, params, text, report)
        if args.plot:
            plot(setting, load, report["losses"], args.plot)
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1))
        CONSOLE.print(f"written: {args.json}")


if __name__ == "__main__":
    main()
