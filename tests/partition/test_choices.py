# SPDX-License-Identifier: Apache-2.0
"""Choices are data: read from one compilation, kept as JSON, and pinned in another."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.conformance.pinned_choices.__main__ import REFUSED, UNEVEN, outcomes
from tests.conformance.pinned_choices.comparing import DIFFERENT, IN_PLACE, SAME
from tests.conformance.pinned_choices.programs import SCENARIOS, of_ops, of_the_benchmark

X, ROWS = P("x"), (64, 16)
SAMPLED = ("17 rows", "both dims", "sub-axes")


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def hidden(x: Any, w: Any) -> Any:
    return np.roll(np.maximum(x @ w, 0), 3, 0).sum(0)


def accumulated(x: Any) -> Any:
    return sw.fori_loop(0, 3, lambda i, total: total + np.sum(x * (i + 1), 0), np.zeros(16, np.float32))


def from_two_placements(x: Any) -> Any:
    """The second one may be cut from the first one."""
    return sw.shard(x, P()) * 2, sw.shard(x, P(None, "x")) + 1


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], Any, Any]] = {
    "layer": (hidden, [(64, 16), (16, 32)], (P("x"), P(None, "y")), P()),
    "three ranges": (lambda x: x[0:54] + x[5:59] + x[10:64], [ROWS], X, X),
    "accumulation": (accumulated, [ROWS], X, P()),
    "two placements": (from_two_placements, [ROWS], X, (P(), P(None, "x"))),
    "transposition": (lambda x: x + x.T, [(64, 64)], P("x", "y"), P("y", "x")),
    "window": (lambda x: x[10:40], [ROWS], X, X),
    "cumulative sum": (lambda x: np.cumsum(x, 0), [ROWS], X, X),
    "loop": (lambda x: sw.fori_loop(0, 3, lambda _, x: x * 2 + np.roll(x, 1, 0), x), [ROWS], X, P(None, "x")),
}


def compiled(name: str, x: int, choices: sw.Choices | None = None) -> tuple[sw.Program, list[np.ndarray]]:
    function, shapes, given, wanted = PROGRAMS[name]
    arrays = [floats(*shape) for shape in shapes]
    mesh = sw.Mesh({"x": x, "y": 2})
    jitted = sw.jit(function, mesh=mesh, in_shardings=given, out_shardings=wanted, choices=choices)
    return jitted.lower(*arrays).compile(), arrays


def op_names(program: sw.Program) -> list[str]:
    return re.findall(r'"?((?:stablehlo|shardwise|chlo)\.\w+)', program.as_text("local"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_pinned_choices_are_made_again_on_another_mesh(name: str) -> None:
    program, arrays = compiled(name, 4)
    again, _ = compiled(name, 4, program.choices)
    assert again.as_text("local") == program.as_text("local")
    larger, _ = compiled(name, 16, sw.Choices.from_json(program.choices.to_json()))
    assert larger.choices == program.choices
    assert op_names(larger) == op_names(program)
    for got, want in zip(leaves(larger(*arrays)), leaves(program(*arrays)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def leaves(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def test_ranges_are_joined_on_another_mesh_only_if_that_is_pinned() -> None:
    """On 16 devices, a tile that holds three ranges of 4 rows would be larger than they are."""
    small, _ = compiled("three ranges", 4)
    [at] = small.choices.exchanges
    assert small.choices.exchanges == {at: "joined"}
    assert small.collectives().by_kind() == {"exchange": 1}
    large, _ = compiled("three ranges", 16)
    assert large.choices.exchanges == {at: "kept"}
    assert large.collectives().by_kind() == {"exchange": 2}  # x[0:54] is where it is needed: blocks of 4 rows
    assert compiled("three ranges", 16, small.choices)[0].collectives().by_kind() == {"exchange": 1}
    apart = replace(small.choices, exchanges={at: "kept"})
    assert compiled("three ranges", 4, apart)[0].collectives().by_kind() == {"exchange": 3}


def test_the_carry_of_an_accumulation_is_a_choice() -> None:
    program, arrays = compiled("accumulation", 4)
    [(carry, placement)] = program.choices.carries.items()
    assert placement == '[{}], unreduced={"x"}'
    assert program.collectives().by_kind() == {"all_reduce": 1}
    # Reduced in each trip: the op that adds is chosen alone then.
    reduced = sw.Choices(carries={carry: ""}, program=program.choices.program)
    again, _ = compiled("accumulation", 4, reduced)
    assert again.choices.ops.items() > program.choices.ops.items()
    assert again.collectives().by_kind() == {"all_reduce": 3}
    np.testing.assert_allclose(again(*arrays), program(*arrays), rtol=1e-5, atol=1e-5)


def test_the_placement_that_a_reshard_starts_from_is_a_choice() -> None:
    program, arrays = compiled("two placements", 4)
    [(source, start)] = program.choices.sources.items()
    assert (source.partition(" -> ")[2], start) == ('[{}, {"x"}]', "[{}, {}]")
    assert program.collectives().by_kind() == {"all_gather": 1}
    other = replace(program.choices, sources={source: '[{"x"}, {}]'}, plans={})
    again, _ = compiled("two placements", 4, other)
    assert again.collectives().by_kind() == {"all_gather": 1, "all_to_all": 1}
    for got, want in zip(again(*arrays), program(*arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["ops", "plans", "sources", "carries", "exchanges"])
def test_an_entry_for_what_the_program_does_not_have_is_refused(kind: str) -> None:
    program, _ = compiled("window", 2)
    extra: Any = {"ops": sw.ChosenOp("stablehlo.add", "", ("[]",), ("[]",)), "plans": ("all_gather",)}.get(kind, "kept")
    with pytest.raises(
        sw.ShardingError,
        match="jit: choices must be of this program, got an entry for what it does not choose, "
        rf"choices\.{kind}\['99'\]; remove the entry",
    ):
        compiled("window", 2, replace(program.choices, **{kind: {**getattr(program.choices, kind), "99": extra}}))


def test_impossible_choices_are_refused() -> None:
    """By an error that names the op, what is pinned, and what the partitioner would choose."""
    for name, kind, choice, subject, got in (
        ("three ranges", "exchanges", "sliced", "shardwise.exchange",
         "sliced, where the partitioner would choose joined"),
        ("accumulation", "carries", '[{"x"}]', "stablehlo.while",
         'carry 1 as [{"x"}], where the partitioner would choose [{}], unreduced={"x"}'),
        ("two placements", "sources", '[{}, {"y"}]', "sdy.sharding_constraint",
         'to [{}, {"x"}] from [{}, {"y"}], where the partitioner would choose [{}, {}]'),
    ):  # fmt: skip
        program, _ = compiled(name, 4)
        [at] = getattr(program.choices, kind)
        rule = "choices must be possible for the program on this mesh"
        with pytest.raises(sw.ShardingError) as error:
            compiled(name, 4, replace(program.choices, **{kind: {at: choice}}))
        entry = re.escape(f"jit: {rule}, got choices.{kind}['{at}']"), re.escape(f": {got}; remove the entry")
        assert re.match(f"{entry[0]}( of {subject})?{entry[1]}", str(error.value))


def test_an_error_about_a_pin_has_the_line_of_the_op() -> None:
    program, _ = compiled("layer", 4)
    [at] = [at for at, op in program.choices.ops.items() if op.op == "stablehlo.dot_general"]
    wrong = replace(program.choices.ops[at], operands=("[{}, {}]", "[{}, {}]"), results=('[{}, {"x"}]',))
    line = hidden.__code__.co_firstlineno + 1
    error = rf"^jit: .*choices\.ops\['{at}'\] of stablehlo\.dot_general: .*test_choices\.py:{line}\)$"
    with pytest.raises(sw.ShardingError, match=error):
        compiled("layer", 4, sw.Choices({at: wrong}))


def test_what_has_no_entry_is_chosen_freely() -> None:
    program, arrays = compiled("layer", 4)
    for kind in ("ops", "plans", "sources", "carries", "exchanges"):
        assert compiled("layer", 4, replace(program.choices, **{kind: {}}))[0].choices == program.choices
    [at] = [at for at, op in program.choices.ops.items() if op.op == "stablehlo.dot_general"]
    rows = sw.ChosenOp("stablehlo.dot_general", "", ('[{"x"}, {}]', "[{}, {}]"), ('[{"x"}, {}]',))
    pinned, _ = compiled("layer", 4, sw.Choices({at: rows}))
    assert pinned.choices.ops[at] == rows != program.choices.ops[at]
    np.testing.assert_allclose(pinned(*arrays), program(*arrays), rtol=1e-4, atol=1e-4)


def test_argmax_has_the_same_ops_where_the_devices_do_not_divide_its_rows() -> None:
    def program(x: int, choices: sw.Choices | None = None) -> sw.Program:
        mesh = sw.Mesh({"x": x})
        jitted = sw.jit(lambda a: np.argmax(a, 1), mesh=mesh, in_shardings=P(None, "x"), choices=choices)
        return jitted.lower(sw.ShapeDtypeStruct((16, 1 << 20), np.float32)).compile()

    small = program(8)
    for devices in (32, 128, 1 << 20):
        assert op_names(program(devices, small.choices)) == op_names(small)


def test_pinned_choices_give_the_same_ops_for_every_op() -> None:
    """A sample of ``python -m tests.conformance.pinned_choices``."""
    scenarios = [(scenario, factors[:1]) for scenario, factors in SCENARIOS if scenario.name in SAMPLED]
    sample = itertools.chain(itertools.islice(of_ops(scenarios), 0, None, 5), of_the_benchmark((4,)))
    found = Counter[str]()
    different = []
    for program, _, outcome in outcomes(sample):
        found[outcome] += 1
        if outcome in (DIFFERENT, REFUSED):
            different.append(program.name)
    assert not different
    assert found[SAME] > 0.8 * found.total() > 1000
    assert found[UNEVEN] < 0.03 * found.total()


def test_choices_are_pinned_that_another_mesh_would_not_consider() -> None:
    """On 32 devices, an axis is as large as dim 0, so that both axes would shard the rows of the diagonal."""

    def diagonal(a: Any) -> Any:
        return np.reshape(a, (32 * 32, 2))[::33]

    def program(devices: int, choices: sw.Choices | None = None) -> sw.Program:
        mesh = sw.Mesh({"x": devices, "y": devices})
        jitted = sw.jit(diagonal, mesh=mesh, in_shardings=P("x", "y"), out_shardings=P(), choices=choices)
        return jitted.lower(sw.ShapeDtypeStruct((32, 32, 2), np.float32)).compile()

    small, large = program(2), program(32)
    assert large.choices.ops != small.choices.ops
    pinned = program(32, small.choices)
    assert pinned.choices == small.choices
    assert op_names(pinned) == op_names(small)
    x = floats(32, 32, 2)
    np.testing.assert_array_equal(pinned(x), diagonal(x))


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        # 5 columns in blocks of 2, and of 1: device 0 needs column 1.
        ("slice (0, 1):(64, 4):(1, 2), two axes, assignment 1", "two axes"),
        # 32 rows and 16 windows of 2 over 2 devices, and over 32: device 1 needs the rows 2 and 3.
        (
            "convolution (2, 32, 4)(2, 4, 3)[b, 0, f]x[0, i, o]->[b, 0, f]((0, 0),)(2,)(1,)(1,)11, "
            "both dims, assignment 6",
            "both dims",
        ),
    ],
)
def test_a_range_that_leaves_its_shards_needs_an_exchange(name: str, scenario: str) -> None:
    [own] = [row for row in SCENARIOS if row[0].name == scenario]
    [program] = [program for program in of_ops([own]) if program.name == name]
    found = [outcome for _, _, outcome in outcomes([program])]
    assert found[-1] == IN_PLACE
    assert set(found) <= {SAME, IN_PLACE}


@pytest.mark.parametrize(
    "text", ["", "[{", '[{"x"}]', '[{"z"}, {}, {}]', '@other[{"x"}, {}, {}]', '[{"x"}, {"x"}, {}]']
)
def test_wrong_placements_in_choices_are_refused(text: str) -> None:
    mesh = sw.Mesh({"x": 2})
    jit = partial(sw.jit, lambda x: np.tanh(x), mesh=mesh, in_shardings=X, out_shardings=X)
    x = sw.ShapeDtypeStruct((8, 4, 2), np.float32)
    [(at, op)] = jit().lower(x).compile().choices.ops.items()
    with pytest.raises(sw.ShardingError, match=r"possible for the program on this mesh, got choices\.ops"):
        jit(choices=sw.Choices({at: replace(op, operands=(text,))})).lower(x).compile()


def test_a_choice_states_the_method_and_the_shardings() -> None:
    program, _ = compiled("layer", 4)
    [dot] = [op for op in program.choices.ops.values() if op.op == "stablehlo.dot_general"]
    assert (dot.method, dot.operands, dot.results) == ("", ('[{"x"}, {}]', '[{}, {"y"}]'), ('[{"x"}, {"y"}]',))
    [joined] = [op for op in program.choices.ops.values() if op.op == "stablehlo.concatenate"]
    assert joined.method == "exchange"


def test_another_plan_can_be_pinned() -> None:
    """The same bytes, by an exchange instead of an all-to-all."""
    x = floats(16, 16)

    def program(choices: sw.Choices | None) -> sw.Program:
        mesh = sw.Mesh({"x": 8})
        jitted = sw.jit(lambda x: x, mesh=mesh, in_shardings=X, out_shardings=P(None, "x"), choices=choices)
        return jitted.lower(x).compile()

    [(at, plan)] = program(None).choices.plans.items()
    assert plan == ("all_to_all",)
    pinned = program(sw.Choices(plans={at: ("exchange",)}))
    assert [row.kind for row in pinned.collectives()] == ["exchange"]
    np.testing.assert_array_equal(pinned(x), x)
    with pytest.raises(
        sw.ShardingError,
        match="jit: choices must be possible for the program on this mesh, "
        rf"got choices\.plans\['{at}'\] of sdy\.reshard: all_reduce "
        r"from \[{\"x\"}, {}\] to \[{}, {\"x\"}\], where the partitioner would choose all_to_all; remove the entry",
    ):
        program(sw.Choices(plans={at: ("all_reduce",)}))


def test_choices_of_another_program_are_refused() -> None:
    program, _ = compiled("window", 2)
    own = compiled("cumulative sum", 2)[0].choices.program
    with pytest.raises(
        sw.ShardingError,
        match=rf"jit: choices must be of this program, {own}, got choices of program {program.choices.program}; "
        "compile without choices",
    ):
        compiled("cumulative sum", 2, program.choices)


def test_the_fingerprint_is_of_the_program_and_not_of_sizes() -> None:
    def fingerprint(function: Callable[..., Any], *shape: int, axis: str = "x", dtype: Any = np.float32) -> str:
        jitted = sw.jit(function, mesh=sw.Mesh({axis: shape[0] // 4}), in_shardings=P(axis))
        return jitted.lower(sw.ShapeDtypeStruct(shape, dtype)).compile().choices.program

    own = fingerprint(np.tanh, 8, 6)
    assert own == fingerprint(np.tanh, 64, 2)
    others = [
        fingerprint(np.sin, 8, 6),
        fingerprint(np.tanh, 8, 6, 2),
        fingerprint(np.tanh, 8, 6, axis="y"),
        fingerprint(np.tanh, 8, 6, dtype=np.float64),
        fingerprint(lambda x: np.tanh(np.tanh(x)), 8, 6),
    ]
    assert len({own, *others}) == 6


PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "the dim of a concatenation": (lambda x: np.concatenate([x, x], 0), lambda x: np.concatenate([x, x], 1)),
    "the dim of a sum": (lambda x: x.sum(0), lambda x: x.sum(1)),
    "the contraction": (lambda x: x @ x, lambda x: np.einsum("km,kn->mn", x, x)),
    "the order of operands": (lambda x: x - x.T, lambda x: x.T - x),
    "which value is read": (lambda x: np.sin(np.cos(x)) + np.cos(x), lambda x: np.sin(np.cos(x)) + np.sin(np.cos(x))),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_fingerprint_tells_programs_apart_that_differ_in(pair: str) -> None:
    one, other = (
        sw.jit(function, mesh=sw.Mesh({"x": 4}), in_shardings=P("x")).lower(floats(16, 16)).compile().choices.program
        for function in PAIRS[pair]
    )
    assert one != other


def test_wrong_choices() -> None:
    with pytest.raises(TypeError, match=r"jit: choices must be those of a program, got .*; pass program\.choices"):
        sw.jit(np.sin, choices=3)
    text = sw.Choices().to_json()
    assert sw.Choices.from_json(text) == sw.Choices()
    for wrong in (
        "[]", "", "[" * 100_000, text[:-20], text.replace("shardwise.choices", "shardwise.mesh"),
        text.replace('"ops": {}', '"ops": []'), text.replace('"ops": {}', '"ops": {"2": 5}'),
        text.replace('"plans": {}', '"plans": {"2": "all_reduce"}'), text.replace('"default"', '"/etc/hostname"'),
        text.replace('"default"', '"h300"'), text.replace('"time"', '"latency"'),
        text.replace('"program": ""', '"program": []'),
    ):  # fmt: skip
        with pytest.raises(
            ValueError, match=r"from_json: takes the JSON of choices, got .*; write it by choices\.to_json"
        ):
            sw.Choices.from_json(wrong)
    for version in ("2", "99", "1.0", "true", "Infinity", '"1"', "null"):
        with pytest.raises(ValueError, match=r"from_json: choices must be of version 1, got version "):
            sw.Choices.from_json(text.replace('"version": 1', f'"version": {version}'))


@pytest.mark.parametrize(
    "choices",
    [
        sw.Choices({1: sw.ChosenOp("stablehlo.add", "", (), ())}),  # type: ignore[dict-item]
        sw.Choices({"1": {"op": "stablehlo.add"}}),  # type: ignore[dict-item]
        sw.Choices(None),  # type: ignore[arg-type]
        sw.Choices(plans={"2": None}),  # type: ignore[dict-item]
        sw.Choices(plans={"2": "all_reduce"}),  # type: ignore[dict-item]
        sw.Choices(options=None),  # type: ignore[arg-type]
    ],
)
def test_entries_of_other_types_are_refused(choices: sw.Choices) -> None:
    with pytest.raises(TypeError, match=r"^jit: choices\.(ops|plans|options) must "):
        sw.jit(np.sin, choices=choices)


def test_a_nested_function_has_the_choices_of_the_program() -> None:
    program, _ = compiled("window", 2)
    inner = sw.jit(np.sin, choices=program.choices)
    with pytest.raises(sw.ShardingError, match="a nested function must not have another choices than the program"):
        sw.jit(lambda x: inner(x) + 1, mesh=sw.Mesh({"x": 2})).lower(floats(8))
