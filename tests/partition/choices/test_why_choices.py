# SPDX-License-Identifier: Apache-2.0
"""`why` of a line with collectives: the ways that were not chosen, at the prices of compilations that pin them."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from shardwise.reports.price import Price

STRUCT, F32 = sw.ShapeDtypeStruct, np.float32
LINE = sw.Mesh({"t": 8})


def project(x: Any, w: Any) -> Any:
    return sw.name(np.einsum("mk,kn->mn", x, w), "y")


WHERE = f"test_why_choices.py:{project.__code__.co_firstlineno + 1}"


def projection(tokens: int, width: int, **options: Any) -> sw.Program:
    jitted = sw.jit(project, mesh=LINE, in_shardings=(P(None, "t"), P("t")), out_shardings=P(), **options)
    return jitted.lower(STRUCT((tokens, width), sw.bfloat16), STRUCT((width, width), sw.bfloat16)).compile()


def test_the_ways_of_a_projection() -> None:
    program = projection(32768, 8192)
    [decision] = program.why(WHERE).decisions
    assert (decision.op, decision.considered) == ("stablehlo.dot_general", 4)
    assert decision.chosen.how.results == ('[{"t"}, {}]',)  # rows
    reduced, columns = decision.others
    assert reduced.how.results == ('[{}, {}], unreduced={"t"}',)
    assert columns.how.results == ('[{}, {"t"}]',)
    # 280 MiB more at 450 GB/s, and less memory.
    assert reduced.difference.bytes == 280 << 20
    assert 0.6e9 < reduced.difference.ps < 0.66e9
    assert str(decision).splitlines()[1].strip().startswith('[{}, {"t"}], [{"t"}, {}] -> [{}, {}], unreduced={"t"}: +6')


def test_the_ledger_says_in_a_few_words_why_an_op_is_computed_so() -> None:
    rows, reduced, columns = projection(32768, 8192).collectives(), '[{}, {}], unreduced={"t"}', '[{}, {"t"}]'
    assert [(row.cause, row.reason) for row in rows] == [
        ("operand 0 of dot_general", f"faster than {reduced}"),
        ("operand 1 of dot_general", f"faster than {reduced}"),
        ("result 0", ""),
    ]
    assert f"operand 0 of dot_general, faster than {reduced}" in str(rows)
    [row] = projection(512, 8192).collectives()
    assert (row.cause, row.reason) == ("reduction in dot_general", f"faster than {columns}")
    assert {row.reason for row in projection(32768, 8192, objective="bytes").collectives()} == {
        f"fewer bytes than {reduced}"
    }
    pinned = projection(512, 8192, choices=projection(512, 8192).choices).collectives()
    assert [row.reason for row in pinned] == ["pinned"]


def test_by_bytes_the_way_of_the_fewest_bytes_is_the_best() -> None:
    [decision] = projection(32768, 8192, objective="bytes").why(WHERE).decisions
    assert decision.considered == 4
    assert [way.difference.bytes >> 20 for way in decision.others] == [56, 336]
    assert decision.others[0].difference.ps < 0
    assert decision.cheaper == 0


def test_ops_of_a_line_with_other_reasons_have_none() -> None:
    def function(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = x @ w
        return x

    jitted = sw.jit(function, mesh=LINE, in_shardings=(P(None, "t"), P("t"), P("t")), out_shardings=P())
    shapes = STRUCT((64, 512), F32), STRUCT((512, 64), F32), STRUCT((64, 8192), F32)
    rows = jitted.lower(*shapes).compile().collectives()
    assert len({row.location for row in rows}) == 1
    assert [row.reason for row in rows if "dot_general" in row.cause] == ["", ""]


def test_a_cheaper_way_and_ways_that_do_not_fit_are_listed() -> None:
    """The partitioner decides one op after another: what a reduction of the first product costs the second pays."""
    cheaper = unfit = 0
    for seed in (0, 14):
        program = RandomProgram(np.random.default_rng(seed)).compiled()
        for location in {row.location for row in program.collectives()}:
            for decision in program.why(location).decisions:
                assert decision.considered >= len(decision.others) + 1
                assert [way.price for way in decision.others] == sorted(way.price for way in decision.others)
                is_cheaper = any(way.difference.ps < 0 for way in decision.others)
                assert is_cheaper == bool(decision.cheaper) == ("it is cheaper" in str(decision))
                assert bool(decision.impossible) == ("not fit the ops around it" in str(decision))
                assert all("choices must be possible" in way.reason for way in decision.impossible)
                cheaper, unfit = cheaper + is_cheaper, unfit + len(decision.impossible)
    assert cheaper > 0
    assert unfit > 0


def test_the_explanation_is_data() -> None:
    explained = projection(32768, 8192).why(WHERE)
    read = json.loads(explained.to_json())
    assert read["decisions"][0]["others"][0]["difference"]["bytes"] == 280 << 20
    assert str(explained.decisions[0]) in str(explained)
    assert "unreduced" in explained._repr_html_()


def test_only_lines_with_collectives_have_decisions() -> None:
    program = sw.jit(project, mesh=LINE, in_shardings=(P("t"), P())).lower(STRUCT((8, 8), F32), STRUCT((8, 8), F32))
    assert program.compile().why(WHERE).decisions == ()
    assert projection(64, 64).why("y").decisions == ()


@pytest.mark.parametrize("spec", [P("t"), P(None, "t"), P()], ids=str)
def test_another_annotation_has_the_price_of_its_program(spec: P) -> None:
    program = projection(8192, 8192)
    instead = program.why("w", instead=spec).instead
    assert instead is not None
    jitted = sw.jit(project, mesh=LINE, in_shardings=(P(None, "t"), spec), out_shardings=P())
    x, w = STRUCT((8192, 8192), sw.bfloat16), STRUCT((8192, 8192), sw.bfloat16)
    other = jitted.lower(x, w).compile().choice_price()
    assert instead.price == other
    assert instead.difference == other - program.choice_price()
    assert str(instead.difference) in str(instead)


def test_an_inner_value_is_annotated_instead() -> None:
    def annotated(x: Any, w: Any) -> Any:
        y = sw.shard(np.einsum("mk,kn->mn", x, w), P("t"))
        return np.tanh(y)

    def free(x: Any, w: Any) -> Any:
        y = np.einsum("mk,kn->mn", x, w)
        return np.tanh(y)

    def program(function: Any) -> sw.Program:
        jitted = sw.jit(function, mesh=LINE, in_shardings=(P(None, "t"), P("t")), out_shardings=P())
        return jitted.lower(STRUCT((512, 256), F32), STRUCT((256, 128), F32)).compile()

    for function, spec, same in ((free, P("t"), annotated), (annotated, P("t"), annotated)):
        instead = program(function).why("y", instead=spec).instead
        assert instead is not None
        assert instead.price == program(same).choice_price()


def test_another_annotation_of_what_a_manual_region_returns() -> None:
    mapped = sw.shard_map(np.tanh, mesh=LINE, in_specs=P("t"), out_specs=P("t"))

    def function(x: Any) -> Any:
        y = mapped(x)
        return y * 2

    program = sw.jit(function, mesh=LINE).lower(STRUCT((512, 256), F32)).compile()
    free, moved = (program.why("y", instead=spec).instead for spec in (P("t"), P(None, "t")))
    assert free is not None
    assert moved is not None
    assert str(free.difference) == "no difference"
    assert moved.difference.bytes > 0


def test_wrong_annotations_instead() -> None:
    program = projection(64, 64)
    with pytest.raises(KeyError, match="no value of the program is called"):
        program.why("nothing", instead=P())
    with pytest.raises(sw.ShardingError, match=r"^why: instead= of w: "):
        program.why("w", instead=P("nope"))
    with pytest.raises(sw.ShardingError, match=r"^why: instead= of w: "):
        program.why("w", instead=3)
    with pytest.raises(ValueError, match="at most 2 entries"):
        program.why("w", instead=P(None, None, "t"))


def test_questions_keep_pins_and_give_no_warnings_of_their_own() -> None:
    program = projection(32768, 8192)
    pinned = projection(32768, 8192, choices=program.choices)
    assert [len(decision.others) for decision in pinned.why(WHERE).decisions] == [2]
    instead = pinned.why("w", instead=P("t")).instead
    assert instead is not None
    assert str(instead.difference) == "no difference"

    def refused(x: Any, w: Any) -> Any:
        return np.tanh(sw.shard(np.tanh(x @ w), P(None, None, unreduced="t")))

    jitted = sw.jit(refused, mesh=LINE, in_shardings=(P(None, "t"), P("t")), out_shardings=P())
    with pytest.warns(sw.ShardingWarning, match="unreduced="):
        program = jitted.lower(STRUCT((64, 64), F32), STRUCT((64, 64), F32)).compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program.why(program.collectives()[0].location).decisions
        program.why("w", instead=P())


def test_a_line_is_that_of_its_file() -> None:
    square, dims = "tensor<64x64xf32>", "contracting_dims = [1] x [0]"
    text = f"""sdy.mesh @mesh = <["t"=8]>
func.func @main(%x: {square} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"t"}}]>}}, %w: {square}) -> {square} {{
  %0 = stablehlo.dot_general %x, %w, {dims} : ({square}, {square}) -> {square} loc("my_model.py":7:1)
  %1 = stablehlo.dot_general %0, %w, {dims} : ({square}, {square}) -> {square} loc("model.py":7:1)
  return %1 : {square}
}}"""
    program = sw.parse(text).compile()
    for name in ("model.py:7", "my_model.py:7"):
        assert {decision.location for decision in program.why(name).decisions} <= {name}


def test_one_of_several_values_is_not_annotated_instead() -> None:
    def function(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = sw.shard(np.tanh(x @ w), P("t"))
        return x

    jitted = sw.jit(function, mesh=LINE, in_shardings=(P("t"), P()))
    program = jitted.lower(STRUCT((64, 64), F32), STRUCT((64, 64), F32)).compile()
    with pytest.raises(sw.ShardingError, match="instead= is about one value, got 4 called 'x'"):
        program.why("x", instead=P(None, "t"))


# ---- prices of random programs ---------------------------------------------------------------------------------------


class RandomProgram:
    """A chain of products with residuals, its mesh, and shardings of arguments."""

    def __init__(self, rng: np.random.Generator) -> None:
        sizes = rng.choice([16, 48, 256, 1024], 4)
        tokens, widths = int(sizes[0]), [int(n) for n in sizes[1:]]
        dims = [(tokens, widths[0]), (widths[0], widths[1]), (widths[1], widths[2]), (widths[0], widths[2])]
        self.shapes = tuple(STRUCT(shape, F32) for shape in dims)
        self.kinds = rng.integers(0, 4, 2)
        self.mesh = sw.Mesh({"a": int(rng.choice([2, 4])), "b": int(rng.choice([2, 4, 64]))})
        self.specs = tuple(P(*rng.permutation(["a", "b", None, None])[:2]) for _ in dims)

    def __call__(self, x: Any, a: Any, b: Any, c: Any) -> Any:
        h = x @ a
        h = [lambda h: h, np.tanh, lambda h: h - h.mean(1, keepdims=True), lambda h: h * 2][self.kinds[0]](h)
        y = h @ b
        return [y, y + x @ c, y.sum(0), np.maximum(y, 0)][self.kinds[1]]

    def compiled(self, choices: sw.Choices | None = None, specs: Any = None) -> sw.Program:
        given = {"in_shardings": specs or self.specs, "out_shardings": P()}
        return sw.jit(self.__call__, mesh=self.mesh, choices=choices, **given).lower(*self.shapes).compile()


@pytest.mark.parametrize("seed", range(8))
def test_each_price_is_the_difference_of_two_compilations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stated = 0
    for _ in range(25):
        drawn = RandomProgram(rng)
        program = drawn.compiled()
        for location in {row.location for row in program.collectives()}:
            for decision in program.why(location).decisions:
                assert decision.chosen.price == program.choice_price()
                for way in decision.others:
                    pinned = drawn.compiled(sw.Choices(ops={decision.key: way.how}))
                    assert way.price == pinned.choice_price()
                    assert way.difference == pinned.choice_price() - program.choice_price()
                    stated += 1
        spec = P(*rng.permutation(["a", "b", None])[:2])
        instead = program.why("b", instead=spec).instead
        assert instead is not None
        other = drawn.compiled(specs=(*drawn.specs[:2], spec, *drawn.specs[3:])).choice_price()
        assert (instead.price, instead.difference) == (other, other - program.choice_price())
    assert stated > 20


def test_prices() -> None:
    small, large = Price(10, 0, 1, 5), Price(2 * 10**12, 1 << 20, 2, 5)
    assert small < large
    assert str(large) == "2 s, 1 MiB, 2 rounds, 5 flop"
    assert str(large - small) == "+2 s, +1 MiB, +1 round"
    assert str(small - large) == "-2 s, -1 MiB, -1 round"
    assert str(small - small) == "no difference"
    assert large + small == Price(2 * 10**12 + 10, 1 << 20, 3, 10)
    assert str(Price(2**62, 2**62, 2**62, 2**62)).count(">= ") == 4
    assert (large + Price(2**62)).ps == 2**62
    assert str(Price()) == "0 s"
    assert large.seconds == 2.0
