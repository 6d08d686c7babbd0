# SPDX-License-Identifier: Apache-2.0
"""`jit(windowed_einsum=)`: products in loops that overlap with a gather or a reduce_scatter; NumPy is the oracle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise import P

SUM, ROWS = 512, 24  # a long sum, so that the result is scattered and no operand moves


@dataclass(frozen=True)
class Form:
    """A product of which one operand is gathered, or whose result is scattered.

    Attributes:
        subscripts: of the einsum.
        shapes: of both operands. Those of ``uneven`` are no multiple of the devices.
        specs: of both operands and of the result, for the axes of the ring.
        gathered: the operand that is gathered; None if the result is scattered.
    """

    name: str
    subscripts: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    uneven: tuple[tuple[int, ...], tuple[int, ...]]
    specs: Callable[[Any], tuple[P, P, P]]
    gathered: int | None = None


FORMS = (
    Form("columns of the rhs", "ik,kj->ij", ((48, 8), (8, 48)), ((47, 7), (7, 41)),
         lambda x: (P(x), P(None, x), P(x)), 1),
    Form("rows of the lhs", "ik,kj->ij", ((48, 8), (8, 48)), ((47, 7), (7, 41)),
         lambda x: (P(x), P(None, x), P(None, x)), 0),
    Form("contracting dim of the rhs", "ik,kj->ij", ((48, 48), (48, 8)), ((47, 41), (41, 7)),
         lambda x: (P(x), P(x), P(x)), 1),
    Form("contracting dim of the lhs", "ki,kj->ij", ((48, 8), (48, 48)), ((41, 7), (41, 47)),
         lambda x: (P(x), P(None, x), P(None, x)), 0),
    Form("batching dim", "bik,bkj->bij", ((48, 4, 8), (48, 8, 48)), ((41, 3, 8), (41, 8, 47)),
         lambda x: (P(x), P(None, None, x), P(None, None, x)), 0),
    Form("scattered rows", "ik,kj->ij", ((ROWS, SUM), (SUM, 8)), ((23, 511), (511, 7)),
         lambda x: (P(None, x), P(x), P(x))),
    Form("scattered columns", "ik,kj->ij", ((8, SUM), (SUM, ROWS)), ((7, 511), (511, 23)),
         lambda x: (P(None, x), P(x), P(None, x))),
    Form("scattered batch", "bik,bkj->bij", ((ROWS, 2, SUM), (ROWS, SUM, 2)), ((23, 2, 511), (23, 511, 2)),
         lambda x: (P(None, None, x), P(None, x), P(x))),
)  # fmt: skip

SUB = sw.Mesh({"a": 8})
MESHES: dict[str, tuple[sw.Mesh, Any]] = {
    "1": (sw.Mesh({"x": 1}), "x"),
    "2": (sw.Mesh({"x": 2}), "x"),
    "3": (sw.Mesh({"x": 3}), "x"),
    "8": (sw.Mesh({"x": 8}), "x"),
    "2x4": (sw.Mesh({"a": 2, "b": 4}), ("a", "b")),
    "4x2, minor first": (sw.Mesh({"a": 4, "b": 2}), ("b", "a")),
    "one of two axes": (sw.Mesh({"a": 2, "b": 4}), "b"),
    "permuted": (sw.Mesh({"x": 4}, device_ids=[2, 0, 3, 1]), "x"),
}


def program_of(form: Form, mesh: sw.Mesh, axes: Any, **options: Any) -> Any:
    def product(x: Any, y: Any) -> Any:
        operands = [sw.replicate(v) if form.gathered == i else v for i, v in enumerate((x, y))]
        return np.einsum(form.subscripts, *operands)

    first, second, result = form.specs(axes)
    return sw.jit(product, mesh=mesh, in_shardings=(first, second), out_shardings=result, **options)


def operands_of(form: Form, uneven: bool, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = form.uneven if uneven else form.shapes
    if np.dtype(dtype).kind == "b":
        return [rng.random(shape) < 0.1 for shape in shapes]
    if np.dtype(dtype).kind == "i":
        return [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def is_windowed(program: Any) -> bool:
    return bool(re.search(r"collective_permute.*shift = -?1 : i64, wrap = true", program.as_text("local")))


def assert_close(found: Any, form: Form, operands: list[Any]) -> None:
    """Within 8 eps of the norms."""
    wide = [operand.astype(np.float64) for operand in operands]
    bound = 8 * float(ml_dtypes.finfo(found.dtype).eps) * np.einsum(form.subscripts, *map(np.abs, wide))
    error = np.abs(np.asarray(found).astype(np.float64) - np.einsum(form.subscripts, *wide))
    assert (error <= bound + 1e-30).all()


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("where", MESHES)
def test_loops_compute_what_numpy_does(where: str, form: Form, uneven: bool) -> None:
    mesh, axes = MESHES[where]
    operands = operands_of(form, uneven, np.float32)
    jitted = program_of(form, mesh, axes, windowed_einsum="always")
    program = jitted.lower(*operands).compile()
    found = jitted(*operands)
    assert is_windowed(program) == (where != "1")
    assert "all_gather" not in program.as_text("local")
    assert "reduce_scatter" not in program.as_text("local")
    assert_close(found, form, operands)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.bool_], ids=str)
def test_integers_and_booleans_have_the_same_bits(dtype: Any, form: Form) -> None:
    for where in ("3", "8"):
        mesh, axes = MESHES[where]
        operands = operands_of(form, True, dtype)
        jitted = program_of(form, mesh, axes, windowed_einsum="always")
        assert is_windowed(jitted.lower(*operands).compile())
        expected = np.asarray(program_of(form, mesh, axes)(*operands))
        assert np.array_equal(np.asarray(jitted(*operands)), expected)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("dtype", [sw.bfloat16, np.float16, np.float64, np.complex64], ids=lambda d: np.dtype(d).name)
def test_sums_of_other_floats_are_as_exact(dtype: Any, form: Form) -> None:
    mesh, axes = MESHES["8"]
    operands = operands_of(form, True, np.float32)
    operands = [operand.astype(dtype) for operand in operands]
    jitted = program_of(form, mesh, axes, windowed_einsum="always")
    assert is_windowed(jitted.lower(*operands).compile())
    found = np.asarray(jitted(*operands))
    wide = [operand.astype(np.complex128 if found.dtype.kind == "c" else np.float64) for operand in operands]
    bound = 8 * float(ml_dtypes.finfo(found.dtype).eps) * np.einsum(form.subscripts, *map(np.abs, wide))
    error = np.abs(found.astype(wide[0].dtype) - np.einsum(form.subscripts, *wide))
    assert (error <= bound + 1e-30).all()


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_halves_that_travel_both_ways_give_the_same(form: Form, uneven: bool) -> None:
    operands = operands_of(form, uneven, np.float32)
    mesh = sw.Mesh({"d": 64, "x": 8})
    jitted = program_of(form, mesh, "x", hardware="tpu_v5p", windowed_einsum="always")
    text = jitted.lower(*operands).compile().as_text("local")
    assert text.count('"shardwise.collective_permute"') in (1, 2)
    assert_close(jitted(*operands), form, operands)


def test_rings_of_a_torus_carry_both_directions_at_once() -> None:
    x, w = sw.ShapeDtypeStruct((32768, 8192), sw.bfloat16), sw.ShapeDtypeStruct((8192, 28672), sw.bfloat16)

    def seconds(mesh: sw.Mesh, hardware: str, mode: str | None) -> tuple[float, int]:
        jitted = program_of(FORMS[0], mesh, "x", hardware=hardware, windowed_einsum=mode)
        program = jitted.lower(x, w).compile()
        return program.estimate(hardware).estimate, program.as_text("local").count('"shardwise.collective_permute"')

    ring = sw.Mesh({"d": 16, "x": 16})  # a dim of the torus, all around
    (alone, _), (looped, permutes) = (seconds(ring, "tpu_v5e", mode) for mode in (None, "time"))
    assert permutes == 2
    assert looped < 0.6 * alone
    node = sw.Mesh({"x": 8})  # a switch, on which one direction is enough
    (alone, _), (looped, permutes) = (seconds(node, "h100_sxm", mode) for mode in (None, "time"))
    assert permutes == 1
    assert looped < 0.8 * alone


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_text_is_as_long_on_any_number_of_devices(form: Form) -> None:
    def lines(devices: int) -> tuple[int, int]:
        shapes = [tuple(size * (64 if size in (48, SUM, ROWS) else 1) for size in shape) for shape in form.shapes]
        operands = [sw.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
        jitted = program_of(form, sw.Mesh({"x": devices}), "x", windowed_einsum="always")
        text = jitted.lower(*operands).compile().as_text("local")
        return text.count('"shardwise.collective_permute"'), len(text.splitlines())

    found = {lines(devices) for devices in (2, 8, 64, 256, 512)}
    assert {permutes for permutes, _ in found} <= {1, 2}  # by the time that each ring takes
    assert len(found) == len({permutes for permutes, _ in found})


def test_permutes_receive_the_bytes_of_the_gather() -> None:
    operands = operands_of(FORMS[2], False, np.float32)
    gathered, looped = (
        program_of(FORMS[2], MESHES["8"][0], "x", windowed_einsum=mode).lower(*operands).compile().collectives()
        for mode in (None, "always")
    )
    assert [(row.kind, row.count) for row in gathered] == [("all_gather", 1)]
    assert [(row.kind, row.count) for row in looped] == [("collective_permute", 7)]
    assert looped.total_bytes == gathered.total_bytes
    assert "operand 1 of dot_general, windowed" in str(looped) or "annotation, windowed" in str(looped)


def test_by_default_nothing_changes() -> None:
    operands = operands_of(FORMS[0], False, np.float32)
    mesh, axes = MESHES["8"]
    texts = {
        mode: program_of(FORMS[0], mesh, axes, windowed_einsum=mode).lower(*operands).compile().as_text("local")
        for mode in (None, "never")
    }
    assert texts[None] == texts["never"]
    assert "all_gather" in texts[None]


def test_products_of_one_gather_run_in_one_loop() -> None:
    def qkv(x: Any, wq: Any, wk: Any, wv: Any) -> tuple[Any, ...]:
        whole = sw.replicate(x)
        return tuple(np.einsum("sd,dh->sh", whole, w) for w in (wq, wk, wv))

    rng = np.random.default_rng(1)
    operands = [rng.normal(size=(64, 16)).astype(np.float32), *rng.normal(size=(3, 16, 32)).astype(np.float32)]
    columns = P(None, "x")
    jitted = sw.jit(qkv, mesh=sw.Mesh({"x": 8}), in_shardings=(P("x"), columns, columns, columns),
                    out_shardings=columns, windowed_einsum="always")  # fmt: skip
    program = jitted.lower(*operands).compile()
    assert program.as_text("local").count("stablehlo.while") == 1
    assert program.collectives().total_bytes == 7 * 8 * 16 * 4
    for found, weight in zip(jitted(*operands), operands[1:], strict=True):
        np.testing.assert_allclose(np.asarray(found), operands[0] @ weight, rtol=1e-4, atol=1e-5)


def test_gradients_are_those_without_loops() -> None:
    def loss(weights: Any, x: Any) -> Any:
        for up, down in weights:
            x = x + np.tanh(x @ sw.replicate(up)) @ sw.replicate(down)
        return (x * x).sum()

    rng = np.random.default_rng(2)
    weights = [tuple(rng.normal(size=s).astype(np.float32) / 8 for s in ((24, 48), (48, 24))) for _ in range(2)]
    x = rng.normal(size=(64, 24)).astype(np.float32)

    def step(mode: str | None) -> Any:
        return sw.jit(sw.value_and_grad(loss), mesh=sw.Mesh({"x": 8}), in_shardings=(P("x"), P("x")),
                      out_shardings=(P(), P("x")), windowed_einsum=mode)  # fmt: skip

    looped = step("always")
    assert is_windowed(looped.lower(weights, x).compile())
    for found, expected in zip(sw.tree.leaves(looped(weights, x)), sw.tree.leaves(step(None)(weights, x)), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)


def test_a_scan_has_the_loop_in_its_body() -> None:
    def run(weights: Any, x: Any) -> Any:
        return sw.scan(lambda h, w: (np.tanh(h @ sw.replicate(w)), None), x, weights)[0]

    rng = np.random.default_rng(3)
    weights, x = rng.normal(size=(5, 24, 24)).astype(np.float32), rng.normal(size=(64, 24)).astype(np.float32)
    jitted = sw.jit(run, mesh=sw.Mesh({"x": 8}), in_shardings=(P(None, "x"), P("x")), out_shardings=P("x"),
                    windowed_einsum="always")  # fmt: skip
    program = jitted.lower(weights, x).compile()
    (row,) = program.collectives()
    assert (row.kind, row.count) == ("collective_permute", 5 * 7)
    h = x
    for w in weights:
        h = np.tanh(h @ w)
    np.testing.assert_allclose(np.asarray(jitted(weights, x)), h, rtol=1e-3, atol=1e-5)


def test_collectives_that_a_user_wrote_stay() -> None:
    def body(x: Any, w: Any) -> Any:
        return np.einsum("ik,kj->ij", x, sw.lax.all_gather(w, "x", axis=0, tiled=True))

    mesh = sw.Mesh({"x": 4})
    run = sw.manual(body, mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
    x, w = np.ones((16, 8), np.float32), np.ones((8, 8), np.float32)
    program = sw.jit(run, mesh=mesh, windowed_einsum="always").lower(x, w).compile()
    assert [row.kind for row in program.collectives()] == ["all_gather"]


# ---- by time, and within a memory limit -----------------------------------------------------------------------------


def layer_of(tokens: int, width: int, hidden: int) -> tuple[Any, tuple[Any, ...]]:
    def run(x: Any, up: Any, down: Any) -> Any:
        return np.tanh(np.einsum("ik,kj->ij", x, sw.replicate(up))) @ sw.replicate(down)

    shapes = ((tokens, width), (width, hidden), (hidden, width))
    return run, tuple(sw.ShapeDtypeStruct(shape, sw.bfloat16) for shape in shapes)


@pytest.mark.parametrize("hardware", ["h100_sxm", "tpu_v5p", "default"])
def test_by_time_a_program_never_takes_more(hardware: str) -> None:
    for tokens in (64, 1024, 16384, 131072):
        run, arguments = layer_of(tokens, 4096, 16384)
        estimates = []
        for mode in (None, "time"):
            jitted = sw.jit(run, mesh=sw.Mesh({"x": 8}), in_shardings=(P("x"), P(None, "x"), P("x")),
                            out_shardings=P("x"), hardware=hardware, windowed_einsum=mode)  # fmt: skip
            estimates.append(jitted.lower(*arguments).compile().estimate(hardware).estimate)
        assert estimates[1] <= estimates[0]


def test_a_limit_that_only_loops_keep() -> None:
    def run(x: Any, w: Any) -> Any:
        return np.einsum("ik,kj->ij", x, sw.replicate(w))

    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(4096, 512)).astype(np.float32), rng.normal(size=(512, 4096)).astype(np.float32)

    def jitted(**options: Any) -> Any:
        return sw.jit(run, mesh=sw.Mesh({"x": 8}), in_shardings=(P("x"), P(None, "x")), out_shardings=P("x"), **options)

    limit = 14 << 20  # shards of 1 MiB each, 8 MiB of the result, and 8 MiB of the gathered weight
    with pytest.raises(sw.errors.OutOfMemoryError, match="memory_limit"):
        jitted(memory_limit=limit, windowed_einsum="never").lower(x, w).compile()
    limited = jitted(memory_limit=limit)
    program = limited.lower(x, w).compile()
    report = program.rematerialized()
    assert program.memory().peak_bytes <= report.after_bytes <= limit < report.before_bytes
    assert [(row.op, row.how) for row in report.rows] == [("stablehlo.dot_general", "windowed")]
    np.testing.assert_allclose(np.asarray(limited(x, w)), x @ w, rtol=1e-4, atol=1e-4)


def test_scanned_layers_within_a_limit_of_less_than_a_weight() -> None:
    def run(weights: Any, x: Any) -> Any:
        return sw.scan(lambda h, w: (np.tanh(h @ sw.replicate(w)), None), x, weights)[0]

    rng = np.random.default_rng(5)
    weights = rng.normal(size=(4, 1024, 1024)).astype(np.float32) / 32
    x = rng.normal(size=(1024, 1024)).astype(np.float32)

    def jitted(**options: Any) -> Any:
        return sw.jit(run, mesh=sw.Mesh({"x": 8}), in_shardings=(P(None, None, "x"), P("x")), out_shardings=P("x"),
                      **options)  # fmt: skip

    limit = 5 << 20  # 2.5 MiB of shards, 1 MiB of a result, and 4 MiB of a gathered weight
    with pytest.raises(sw.errors.OutOfMemoryError, match=r"got a peak of 7.5 MiB at least, 7.5 MiB without"):
        jitted(memory_limit=limit, windowed_einsum="never").lower(weights, x).compile()
    limited = jitted(memory_limit=limit)
    program = limited.lower(weights, x).compile()
    assert program.memory().peak_bytes <= limit
    assert [(row.op, row.how) for row in program.rematerialized().rows] == [("stablehlo.dot_general", "windowed")]
    np.testing.assert_allclose(np.asarray(limited(weights, x)), np.asarray(jitted()(weights, x)), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("rows", "binds"), [(1024, "permute"), (65536, "product")])
def test_a_trip_takes_as_long_as_its_product_or_its_permute(rows: int, binds: str) -> None:
    x, w = sw.ShapeDtypeStruct((rows, 8192), sw.bfloat16), sw.ShapeDtypeStruct((8192, 8192), sw.bfloat16)
    options = {"hardware": "h100_sxm", "windowed_einsum": "always"}
    program = program_of(FORMS[0], sw.Mesh({"x": 8}), "x", **options).lower(x, w).compile()
    estimate = program.estimate("h100_sxm")
    permute = sum(row.seconds for row in estimate if row.name == "collective_permute")
    in_loop = [row for row in estimate if row.executions == 7 and row.kind == "kernel"]
    kernels = sum(row.seconds for row in in_loop)
    trip = max(permute, kernels)
    assert (trip == permute) == (binds == "permute")
    behind = sum(row.seconds for row in estimate if row.kind == "kernel" and row.executions == 1)
    conditions = sum(8 * row.seconds for row in estimate if row.executions == 8)
    assert 7 * trip + behind <= estimate.estimate <= 1.02 * (7 * trip + behind + conditions)


def drawn_case(seed: int) -> tuple[Any, list[Any], np.ndarray]:
    """A random product, placed at random, in loops where that is possible; its integer operands, and its result."""
    rng = np.random.default_rng(seed)
    mesh = sw.Mesh({"a": int(rng.integers(2, 5)), "b": int(rng.integers(2, 4))})
    kinds = {letter: rng.choice(["batch", "lhs", "rhs", "sum"]) for letter in "pqrstu"[: int(rng.integers(3, 7))]}
    sizes = {letter: int(rng.integers(1, 24 // len(kinds) + 3)) for letter in kinds}
    lhs, rhs, result = (
        "".join(rng.permutation([letter for letter, kind in kinds.items() if kind in wanted]))
        for wanted in (("batch", "lhs", "sum"), ("batch", "rhs", "sum"), ("batch", "lhs", "rhs"))
    )

    def spec(letters: str) -> P:
        dims: list[Any] = [None] * len(letters)
        for axis in rng.permutation(["a", "b"]):
            if letters and rng.random() < 0.8:
                at = int(rng.integers(len(letters)))
                dims[at] = axis if dims[at] is None else (*np.atleast_1d(dims[at]), axis)
        return P(*(tuple(map(str, np.atleast_1d(dim))) if dim is not None else None for dim in dims))

    replicated = [bool(rng.random() < 0.6) for _ in range(2)]

    def run(x: Any, y: Any) -> Any:
        operands = [sw.replicate(v) if whole else v for v, whole in zip((x, y), replicated, strict=True)]
        return np.einsum(f"{lhs},{rhs}->{result}", *operands)

    operands = [rng.integers(-5, 5, [sizes[letter] for letter in letters]) for letters in (lhs, rhs)]
    jitted = sw.jit(run, mesh=mesh, in_shardings=(spec(lhs), spec(rhs)), out_shardings=spec(result),
                    windowed_einsum="always", objective=str(rng.choice(["time", "bytes"])))  # fmt: skip
    return jitted, operands, np.einsum(f"{lhs},{rhs}->{result}", *operands)


def test_random_products_have_the_bits_of_numpy() -> None:
    windowed = 0
    for seed in range(200):
        jitted, operands, expected = drawn_case(seed)
        program = jitted.lower(*operands).compile()
        windowed += is_windowed(program)
        found = np.asarray(program.run(*operands, poison=True))
        np.testing.assert_array_equal(found, expected, err_msg=f"seed {seed}")
    assert windowed > 50
