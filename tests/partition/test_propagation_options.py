# SPDX-License-Identifier: Apache-2.0
"""What a user may say about propagation: the same words for jit, its stages, texts and the command line."""

from __future__ import annotations

import inspect
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial, wraps
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from shardwise.cli import main
from shardwise.jit.options import JitOptions
from shardwise.programs.propagation_options import STRATEGIES, PropagationKeywords, PropagationOptions

MESH = sw.Mesh({"x": 4, "y": 2})
A = np.arange(40, dtype=np.float32).reshape(10, 4)
B = np.arange(32, dtype=np.float32).reshape(4, 8)
C = np.arange(8, dtype=np.float32)
ALL = [
    {"strategy": strategy, "conservative": conservative, "strict_divisible": strict}
    for strategy, conservative, strict in itertools.product(STRATEGIES, (False, True), (False, True))
]


def model(a: Any, b: Any, c: Any) -> Any:
    h = a @ b  # "x" is wanted for both of its dims: basic propagation hands on neither
    g = c.reshape(2, 4)  # parts of "x" for both dims, but for conservative propagation
    return np.tanh(h), g + 1  # 10 rows, which "x" does not divide


def jitted(**options: Any) -> Any:
    return sw.jit(model, mesh=MESH, in_shardings=(P("x"), P(None, "x"), P("x")), **options)


# ---- one meaning everywhere -----------------------------------------------------------------------------------------


def test_every_option_says_something_of_the_example() -> None:
    texts = {json.dumps(options): str(jitted().trace(A, B, C).propagate(**options)) for options in ALL}
    assert len(set(texts.values())) == len(ALL)


@pytest.mark.parametrize("options", ALL, ids=str)
def test_options_mean_the_same_everywhere(options: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    plain, special = jitted().trace(A, B, C), jitted(**options).trace(A, B, C)
    program = special.lower().compile()
    text = program.as_text("propagated")
    assert str(special.propagate()) == str(special.lower().propagate()) == str(special.apply("propagate")) == text
    assert str(plain.propagate(**options)) == str(sw.parse(str(plain)).propagate(**options)) == text
    file = tmp_path / "program.mlir"
    file.write_text(plain.as_text(locations=True))
    words = [f"--strategy={options['strategy']}"]
    words += [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    assert main(["opt", str(file), "--passes=propagate", *words]) == 0
    assert capsys.readouterr().out == text

    by_text = plain.why("%1", **options)
    assert by_text.to_dict() == sw.parse(file.read_text()).why("%1", **options).to_dict()
    assert main(["why", str(file), "%1", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out) == by_text.to_dict()
    line = f"test_propagation_options.py:{model.__code__.co_firstlineno + 1}"
    for name in ("h", "g", "a", "tanh", "reshape[0]", line):
        # A compiled program also explains how the ops of a line are computed.
        assert special.why(name).values == plain.why(name, **options).values == program.why(name).values


@pytest.mark.parametrize("options", ALL, ids=str)
def test_programs_with_options_give_the_numbers_of_numpy(options: dict[str, Any]) -> None:
    (got, doubled), (tanh, g) = jitted(**options)(A, B, C), model(A, B, C)
    np.testing.assert_allclose(got, tanh, rtol=1e-6)
    np.testing.assert_array_equal(doubled, g)
    shapes = {shard.data.shape for shard in got.addressable_shards}
    assert len(shapes) == (2 if options == {**ALL[0], "conservative": options["conservative"]} else 1)


@pytest.mark.parametrize("name", ["propagate", "why", "apply", "compile"])
def test_stages_and_texts_take_the_same_arguments(name: str) -> None:
    signatures = {inspect.signature(getattr(kind, name)) for kind in (sw.Module, sw.Traced, sw.Lowered)}
    assert len(signatures) == 1
    assert set(ALL[0]) <= set(signatures.pop().parameters) & set(inspect.signature(sw.jit).parameters)


# ---- what a recorded program can do -------------------------------------------------------------------------------


def test_a_recorded_program_is_a_module() -> None:
    traced = jitted().trace(A, B, C)
    for stage in (traced, traced.lower()):
        text = sw.parse(str(stage))
        assert isinstance(stage, sw.Module)
        assert stage == text
        assert stage.as_text(generic=True) == text.as_text(generic=True)
        assert stage.sharding_rules() == text.sharding_rules()
        assert stage.apply("simplify", "propagate") == text.apply("simplify", "propagate")
        assert type(stage.propagate()) is type(stage.from_json(stage.to_json())) is sw.Module
        stage.verify()


def test_values_of_a_recorded_program_are_asked_for_by_the_names_of_source_and_text() -> None:
    for stage in (jitted().trace(A, B, C), jitted().lower(A, B, C)):
        by_name, by_text = stage.why("h"), stage.why("%0")
        assert (by_name.values[0].name, by_text.values[0].name) == ("h", "%0")
        (axis,), (same,) = by_name.values[0].axes, by_text.values[0].axes
        assert (axis.origin, same.origin) == ("argument a", "argument %arg0")
        assert [step.location for step in axis.path] == [step.location for step in same.path] != []
        assert by_name.values[0].location.endswith(f"test_propagation_options.py:{model.__code__.co_firstlineno + 1}")
        with pytest.raises(KeyError, match="no value of the program is called 'hh'; did you mean h"):
            stage.why("hh")
        with pytest.raises(TypeError, match="why: takes the name of a value, an op or FILE:LINE, got 3"):
            stage.why(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", ALL[:5:2], ids=str)
def test_what_was_propagated_is_explained_as_it_was(options: dict[str, Any]) -> None:
    for stage in (jitted().trace(A, B, C), jitted().lower(A, B, C), sw.parse(str(jitted().trace(A, B, C)))):
        expected = stage.why("%0", **options).to_dict()
        propagated = stage.propagate(**options)
        assert propagated.why("%0").to_dict() == expected
        assert propagated.apply("assign").why("%0").to_dict() == expected
        assert stage.apply("propagate", "assign", **options).why("%0").to_dict() == expected
        with pytest.raises(sw.ShardingError, match="why: strategy must be that of the propagation"):
            propagated.why("%0", strategy=next(other for other in STRATEGIES if other != options["strategy"]))
    assert jitted(**options).trace(A, B, C).propagate().why("h").values[0].strategy == options["strategy"]


def test_a_propagation_after_other_passes_is_explained_with_what_they_did() -> None:
    module = sw.parse(str(jitted().trace(A, B, C))).apply("propagate", "assign")
    again = module.apply("propagate")
    assert {value.op for value in again.why("reshard").values} == {"sdy.reshard"}
    with pytest.raises(KeyError, match="no value of the program is called 'reshard'"):
        module.why("reshard")


def test_manual_regions_are_propagated_and_explained_from_python() -> None:
    def part_of(part: Any, w: Any) -> Any:
        part = sw.shard(part, P(None, "y"))
        h = np.tanh(part)
        return h @ w

    def whole(a: Any, w: Any) -> Any:
        double = a * 2
        return sw.manual(part_of, MESH, (P("x"), P()), P("x"), axes={"x"})(double, w)

    traced = sw.jit(whole, mesh=MESH).trace(np.zeros((8, 4), np.float32), B)
    assert traced.propagate() == sw.parse(str(traced)).propagate()
    (double,) = traced.why("double").values
    assert double.sharding == '[{"x"}, {"y"}]'
    rows, columns = double.axes
    line = whole.__code__.co_firstlineno + 2
    assert (rows.origin, rows.location) == ("sdy.manual_computation", f"{__file__}:{line}")
    line = part_of.__code__.co_firstlineno + 1
    assert (columns.origin, columns.location) == ("sdy.sharding_constraint", f"{__file__}:{line}")
    (tanh,) = traced.why("tanh").values  # in the region
    assert (tanh.name, tanh.sharding, tanh.line) == ("h", '[{}, {"y"}]', line + 1)
    assert traced.why("h").values == (tanh,)
    assert [value.line for value in traced.why("part").values] == [whole.__code__.co_firstlineno + 2, line]
    (product,) = traced.lower().why("dot_general", counterfactual=True).values
    assert (product.sharding, product.location) == ("[{}, {}]", f"{__file__}:{line + 2}")
    a = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    np.testing.assert_allclose(traced.lower().compile().run(a, B), np.tanh(a * 2) @ B, rtol=1e-5, atol=1e-5)


# ---- rules of one's own ---------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32)


def layer(x: Any, w: Any) -> Any:
    return np.tanh(x @ w) @ np.ones((4, 12), np.float32)


@pytest.mark.parametrize(
    ("rules", "shardings"),
    [
        ({}, ['[{"x"}, {}]', '[{"x"}, {}]', '[{"x"}, {}]']),
        ({"tanh": "i j -> k l"}, ['[{"x"}, {}]', "[{}, {}]", "[{}, {}]"]),
        ({"stablehlo.tanh": "i j -> i j"}, ['[{"x"}, {}]', '[{"x"}, {}]', '[{"x"}, {}]']),
        ({"dot_general[1]": "i j, j k -> l k"}, ['[{"x"}, {}]', '[{"x"}, {}]', "[{}, {}]"]),
        ({"dot_general": sw.sharding_rule("i j, k l -> m n")}, ["[{}, {}]", "[{}, {}]", "[{}, {}]"]),
        ({"dot_general[0]": "i j, j k -> j k", "dot_general[1]": "i j, j k -> i k"}, ["[{}, {}]"] * 3),
    ],
    ids=str,
)
def test_rules_of_ones_own_change_shardings_and_no_numbers(rules: dict[str, Any], shardings: list[str]) -> None:
    fun = sw.jit(layer, mesh=MESH, in_shardings=(P("x"), P()), out_shardings=None, sharding_rules=rules)
    program = fun.lower(X, W).compile()
    (first,), (tanh,), (second,) = (program.why(op).values for op in ("dot_general[0]", "tanh", "dot_general[1]"))
    assert [first.sharding, tanh.sharding, second.sharding] == shardings
    np.testing.assert_allclose(program(X, W), layer(X, W), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fun(X, W), layer(X, W), rtol=1e-5, atol=1e-5)
    assert fun.trace(X, W).propagate() == sw.parse(program.as_text("propagated"))


def test_rules_are_for_programs_with_gradients_too() -> None:
    def loss(x: Any, w: Any) -> Any:
        return (layer(x, w) ** 2).sum()

    plain = sw.jit(sw.grad(loss), mesh=MESH, in_shardings=(P("x"), P()))
    ruled = sw.jit(sw.grad(loss), mesh=MESH, in_shardings=(P("x"), P()), sharding_rules={"tanh": "i j -> k l"})
    assert plain.lower(X, W).compile().as_text() != ruled.lower(X, W).compile().as_text()
    np.testing.assert_allclose(ruled(X, W), plain(X, W), rtol=1e-4, atol=1e-4)


def test_a_stage_takes_rules_and_goes_on() -> None:
    traced = sw.jit(layer, mesh=MESH, in_shardings=(P("x"), P())).trace(X, W)
    for stage in (
        traced.with_sharding_rule("tanh", "i j -> k l").lower(),
        traced.lower().with_sharding_rule("tanh", "i j -> k l"),
    ):
        program = stage.compile()
        assert program.why("tanh").values[0].sharding == "[{}, {}]"
        np.testing.assert_allclose(program(X, W), layer(X, W), rtol=1e-5, atol=1e-5)
    assert "sharding_rule" not in str(traced)


# ---- mistakes -------------------------------------------------------------------------------------------------------

PLACES: list[tuple[str, Callable[..., Any]]] = [
    ("jit", jitted),
    ("propagate", sw.parse(str(jitted().trace(A, B, C))).propagate),
    ("propagate", jitted().trace(A, B, C).propagate),
    ("propagate", jitted().lower(A, B, C).propagate),
    ("why", lambda **options: jitted().trace(A, B, C).why("h", **options)),
    ("apply", lambda **options: jitted().trace(A, B, C).apply("propagate", **options)),
]


@pytest.mark.parametrize(("what", "place"), PLACES)
@pytest.mark.parametrize("wrong", ["Basic", "", 1, ["basic"], b"basic"])
def test_another_strategy_is_refused_with_the_choices(what: str, place: Any, wrong: Any) -> None:
    with pytest.raises(sw.ShardingError) as caught:
        place(strategy=wrong)
    assert f"{what}: strategy must be 'basic' or 'aggressive', got {wrong!r}" in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


@pytest.mark.parametrize(("what", "place"), PLACES)
@pytest.mark.parametrize("name", ["conservative", "strict_divisible"])
@pytest.mark.parametrize("wrong", ["yes", 1, 0.0])
def test_a_switch_must_be_true_or_false(what: str, place: Any, name: str, wrong: Any) -> None:
    with pytest.raises(sw.ShardingError, match=re.escape(f"{what}: {name} must be True or False, got {wrong!r}")):
        place(**{name: wrong})
    place(**{name: np.bool_(True)})


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ("i j -> i j", "jit: sharding_rules must be a mapping from names of ops to rules, got 'i j -> i j'; write"),
        ({3: "i -> i"}, "jit: sharding_rules must be a mapping from names of ops to rules, got {3: 'i -> i'}"),
        ({"tanh": 3}, "jit: a rule must be made by sharding_rule, or be its text, got 3"),
        ({"tanh": "i j"}, "sharding_rule: a rule must be operands -> results, got 'i j'"),
    ],
)
def test_rules_that_are_none_are_refused_at_once(rules: Any, text: str) -> None:
    with pytest.raises(sw.ShardingError, match=re.escape(text)):
        sw.jit(layer, mesh=MESH, sharding_rules=rules)


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        (
            {"tan": "i -> i"},
            "with_sharding_rule: an op must be one of the program, got 'tan'; it has stablehlo.constant, "
            "stablehlo.dot_general",
        ),
        ({"tanh[1]": "i j -> i j"}, "with_sharding_rule: an op must be one of the program, got 'tanh[1]'; it has"),
        ({"tanh": "i -> i"}, "sharding_rule: 'i' must have an entry for each dim, got shape (8, 4)"),
    ],
)
def test_rules_that_do_not_fit_are_refused_with_the_program(rules: Any, text: str) -> None:
    fun = sw.jit(layer, mesh=MESH, sharding_rules=rules)
    with pytest.raises(sw.ShardingError, match=re.escape(text)):
        fun(X, W)


@pytest.mark.parametrize(
    ("own", "outer"),
    [
        ({"strategy": "basic"}, {}),
        ({"conservative": True}, {"strict_divisible": True}),
        ({"strict_divisible": True}, {"strategy": "basic"}),
        ({"sharding_rules": {"tanh": "i j -> k l"}}, {"sharding_rules": {"tanh": "i j -> i j"}}),
    ],
)
def test_a_nested_function_with_other_options_is_refused_and_not_ignored(
    own: dict[str, Any], outer: dict[str, Any]
) -> None:
    inner = sw.jit(np.tanh, **own)
    (name,) = own
    with pytest.raises(sw.ShardingError, match=f"jit: a nested function must not have another {name} than the program"):
        sw.jit(lambda x: inner(x) + 1, mesh=MESH, **outer)(X)
    np.testing.assert_allclose(sw.jit(lambda x: inner(x) + 1, mesh=MESH, **own)(X), np.tanh(X) + 1, atol=1e-6)


def test_what_a_nested_function_says_is_heard_where_it_is_the_default() -> None:
    """Saying the default is not saying nothing."""
    whole: dict[str, Any] = {**ALL[-1], "sharding_rules": {"tanh": sw.sharding_rule("i j -> i j")}}
    for name, default in {**ALL[0], "sharding_rules": {}}.items():
        said: dict[str, Any] = {name: default}
        inner = sw.jit(np.tanh, **said)
        rule = f"jit: a nested function must not have another {name} than the program, {whole[name]!r}"
        with pytest.raises(sw.ShardingError, match=re.escape(f"{rule}, got {default!r}; give it to the jit around")):
            sw.jit(lambda x, inner=inner: inner(x) + 1, mesh=MESH, **whole)(X)
        sw.jit(lambda x, inner=inner: inner(x) + 1, mesh=MESH)(X)  # whose options are these, said or not
    sw.jit(lambda x: sw.jit(np.tanh)(x) + 1, mesh=MESH, **whole)(X)


SAID: list[dict[str, Any]] = [
    {"strategy": "basic"},
    {"conservative": True},
    {"strict_divisible": True},
    {"sharding_rules": {"tanh": "... i -> ... j"}},
]


@pytest.mark.parametrize("said", SAID, ids=str)
def test_a_transform_of_a_jitted_function_is_propagated_as_it_says(
    said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces: list[Any] = []
    lower = sw.Traced.lower
    monkeypatch.setattr(sw.Traced, "lower", lambda traced: traces.append(traced) or lower(traced))

    def f(a: Any) -> Any:
        h = sw.shard(a, P("x")) @ sw.shard(B, P(None, "x"))
        return np.tanh(h).sum() + (sw.shard(a[:2].reshape(8), P("x")).reshape(2, 4) + 1).sum()

    jitted, plain = sw.jit(f, mesh=MESH, **said), sw.jit(f, mesh=MESH)
    a, many = A / 40, np.stack([A / 40, A / 20, -A / 40])
    for transform, recorded, argument in (
        (sw.grad, sw.value_and_grad, a),  # which is computed in any case
        (sw.value_and_grad, sw.value_and_grad, a),
        (sw.vmap, sw.vmap, many),
        (lambda fun: sw.vmap(sw.grad(fun)), lambda fun: sw.vmap(sw.grad(fun)), many),
    ):
        numbers = transform(jitted)(argument)
        (program,) = traces
        traces.clear()
        wanted, without = (sw.jit(recorded(plain), mesh=MESH, **how).trace(argument) for how in (said, {}))
        got, same, other = (str(x.propagate()).partition("\n")[2] for x in (program, wanted, without))  # but the name
        assert got == same != other
        for number, known in zip(numbers, transform(plain)(argument)):
            np.testing.assert_allclose(number, known, rtol=1e-5)
        traces.clear()


@pytest.mark.parametrize("said", SAID, ids=str)
def test_a_manual_region_of_a_jitted_function_is_propagated_as_it_says(said: dict[str, Any]) -> None:
    jitted = sw.jit(lambda part: np.tanh(part), mesh=MESH, **said)
    np.testing.assert_allclose(sw.manual(jitted, None, P("x"), P("x"), axes={"x"})(C), np.tanh(C), rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: partial(f, b=2.0), lambda f: Held(f).method, lambda f: Method().method])
def test_what_a_jitted_function_says_is_found_behind_what_is_made_of_it(wrap: Any) -> None:
    jitted = sw.jit(lambda a, b=2.0: (a * a * b).sum(), mesh=MESH, strategy="basic")
    np.testing.assert_array_equal(sw.grad(wrap(jitted))(C), 4 * C)


class Held:
    def __init__(self, function: Any) -> None:
        self.method = wraps(function)(lambda a: function(a))


class Method:
    @partial(sw.jit, mesh=MESH, strategy="basic")
    def method(self, a: Any) -> Any:
        return (2 * a * a).sum()


@pytest.mark.parametrize("passes", [("propagate", 3), (["propagate"],)])
def test_passes_are_asked_for_by_name(passes: Any) -> None:
    with pytest.raises(sw.ShardingError, match="apply: takes names of passes, got"):
        jitted().trace(A, B, C).apply(*passes)


def test_a_strategy_that_the_extension_is_asked_for_is_checked_there_too() -> None:
    module = _core.ir.parse(str(jitted().trace(A, B, C)))
    with pytest.raises(sw.ShardingError, match="propagate: strategy must be 'basic' or 'aggressive', got best"):
        _core.passes.propagate_program(module, strategy="best")


TEXT = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %h = stablehlo.tanh %a : tensor<8xf32>
  return %h : tensor<8xf32>
}"""


@pytest.mark.parametrize(
    ("passes", "said", "rule"),
    [
        (("propagate_basic",), {"strategy": "aggressive"}, "strategy is an option of propagate, got 'aggressive'"),
        (("propagate-user-priority",), {"strict_divisible": True}, "strict_divisible is an option of propagate, got"),
        (
            ("simplify", "assign"),
            {"conservative": False},
            "conservative is an option of populate_rules or propagate or",
        ),
        ((), {"strategy": "basic"}, "got 'basic' for no pass"),
    ],
)
def test_an_option_that_no_pass_reads_is_refused(passes: tuple[str, ...], said: dict[str, Any], rule: str) -> None:
    with pytest.raises(sw.ShardingError, match=re.escape(rule)):
        sw.parse(TEXT).apply(*passes, **said)
    assert sw.parse(TEXT).apply(*passes, "propagate", **said)


def test_a_level_is_explained_by_the_strategy_in_its_name() -> None:
    basic = sw.parse(TEXT).apply("propagate_basic")
    assert "by basic propagation" in str(basic.why("%h", strategy="basic"))
    with pytest.raises(sw.ShardingError, match="must be that of the propagation, 'basic', got 'aggressive'"):
        basic.why("%h", strategy="aggressive")


def test_every_user_has_the_fields_of_one_dataclass() -> None:
    names = {option.name for option in fields(PropagationOptions)}
    assert set(PropagationKeywords.__annotations__) == names
    for function in (sw.jit, sw.Module.propagate, sw.Module.why, sw.Module.apply, sw.Module.compile):
        assert names <= set(inspect.signature(function).parameters)
    assert set(inspect.signature(sw.jit).parameters) - {"fun"} == get_type_hints(JitOptions).keys()


@pytest.mark.parametrize("command", ["opt", "why", "run"])
def test_the_command_line_has_an_argument_for_each_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = capsys.readouterr().out
    for option in fields(PropagationOptions):
        assert f"--{option.name.replace('_', '-')} " in text
