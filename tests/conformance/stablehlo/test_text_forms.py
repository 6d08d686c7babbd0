# SPDX-License-Identifier: Apache-2.0
"""Forms of a text that mean the same: aliases, any spacing, an empty module, visibility, the order of manual axes."""

from __future__ import annotations

import re

import pytest

import shardwise as sw
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.stablehlo.spaced_texts import spread, tight
from tests.support.example_programs import traced_example
from tests.support.paths import GOLDEN

JAX_TEXTS = ("conv_net", "recurrent", "loops", "statistics", "solves", "manual_region", "narrow_types", "call_twice")

SHARDING, PER_VALUE = '#sdy.sharding<@m, [{"x"}]>', '#sdy.sharding_per_value<[<@m, [{"x"}]>]>'
BODY = """module {
  sdy.mesh @m = <["x"=4]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


# ---- aliases --------------------------------------------------------------------------------------------------------


def aliased(definitions: str, mesh: str = "", sharding: str = "", per_value: str = "", kind: str = "") -> str:
    text = BODY
    for known, alias in {'<["x"=4]>': mesh, SHARDING: sharding, PER_VALUE: per_value, "tensor<8xf32>": kind}.items():
        text = text.replace(known, alias or known)
    return f"{definitions}\n{text}"


ALIASES = {
    "of a mesh": aliased('#m = #sdy.mesh<["x"=4]>', mesh="#m"),
    "of an alias": aliased('#n = #sdy.mesh<["x"=4]>\n#m = #n', mesh="#m"),
    "over several lines": aliased('#m = #sdy.mesh<\n  ["x"\n = 4]>', mesh="#m"),
    "indented": aliased('  #m = #sdy.mesh<["x"=4]>', mesh="#m"),
    "before the module": aliased('#m = #sdy.mesh<["x"=4]>', mesh="#m").replace(">\nmodule", "> module"),
    "of a sharding": aliased('#s = #sdy.sharding<@m, [{"x"}]>', sharding="#s"),
    "of the shardings of results": aliased('#s = #sdy.sharding_per_value<[<@m, [{"x"}]>]>', per_value="#s"),
    "of one sharding of several": aliased('#s = #sdy.sharding<@m, [{"x"}]>', per_value="#sdy.sharding_per_value<[#s]>"),
    "of a type": aliased("!t = tensor<8xf32>", kind="!t"),
    "that nothing uses": aliased('#a = dense<1> : tensor<2xi64>\n#b = affine_map<(d0) -> (d0)>\n#c = -1.5e+3 : f32'),
    "of a string": aliased('#d = "}"\n#e = {a = @f, b = [unit]}'),
    "no alias, but the attribute in full": BODY.replace("= <[", "= #sdy.mesh<["),
    "in generic form": BODY.replace('sdy.mesh @m = <["x"=4]>', '"sdy.mesh"() <{mesh = #m, sym_name = "m"}> : () -> ()')
    .replace("module", '#m = #sdy.mesh<["x"=4]>\nmodule', 1),
}  # fmt: skip


@pytest.mark.parametrize("text", ALIASES.values(), ids=ALIASES)
def test_an_alias_is_what_it_stands_for(shardy: ShardyOracle, text: str) -> None:
    assert str(sw.parse(text)) == BODY
    assert shardy.parse(text) == shardy.parse(BODY)


def test_a_mesh_behind_its_uses_may_be_an_alias() -> None:
    mesh = '  sdy.mesh @m = <["x"=4]>\n'
    text = '#m = #sdy.mesh<["x"=4]>\n' + BODY.replace(mesh, "")[: -len("}\n")] + "  sdy.mesh @m = #m\n}\n"
    assert str(sw.parse(text)) == BODY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sdy.mesh @m = #m", '1:15: program text: an alias must be defined in the text, got #m'),
        ("#m = #m\nsdy.mesh @m = #m", "1:6: program text: nests at most 256 deep, got '#'"),
        ("#m = \nmodule {}\n#n =", "3:5: program text: expected the meaning of an alias, got the end of the text"),
        ("#m = unit\nsdy.mesh @m = #m", "1:6: program text: expected '<' before a mesh, got 'unit'"),
        ('"sdy.mesh"() <{mesh = 3 : i64, sym_name = "m"}> : () -> ()',
         "1:23: program text: the property 'mesh' of sdy.mesh must be #sdy.mesh<…> or an alias of it, got '3'"),
    ],
)  # fmt: skip
def test_an_alias_that_means_no_mesh_is_refused(text: str, message: str) -> None:
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(text)
    assert str(caught.value).replace('"', "'").startswith(message), caught.value


# ---- spaces ---------------------------------------------------------------------------------------------------------


def sections() -> dict[str, str]:
    """Texts with all of the syntax that is read: golden texts, stages of examples in both forms."""
    texts = {}
    for path in sorted(GOLDEN.glob("*/*.mlir")):
        for i, text in enumerate(re.split(r"^// ----.*$", path.read_text(), flags=re.MULTILINE)):
            texts[f"{path.parent.name}/{path.stem} {i}"] = text
    for stage, module in traced_example("gradient").lower().compile()._compiled.stages.items():
        texts[stage] = module.text()
        texts[f"{stage}, generic"] = module.text(generic=True)
        texts[f"{stage}, with locations"] = module.text(locations=True)
    return texts


def in_all_spacings(text: str) -> list[str]:
    return [spread(text, "\n"), spread(text, " // note\n\t"), tight(text)]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in sections().items()])
def test_spaces_do_not_matter(text: str) -> None:
    for spaced in in_all_spacings(text):
        assert str(sw.parse(spaced)) == str(sw.parse(text))


@pytest.mark.parametrize("name", JAX_TEXTS)
def test_spaces_do_not_matter_in_texts_of_jax(shardy: ShardyOracle, name: str) -> None:
    text = shardy.lower(name, locations=True)
    for spaced in in_all_spacings(text):
        assert shardy.parse(spaced) == shardy.parse(text), "MLIR tells them apart"
        assert str(sw.parse(spaced)) == str(sw.parse(text))


def test_keys_of_shardy_may_have_spaces_before_and_behind_the_equals_sign(shardy: ShardyOracle) -> None:
    text = """module {
  sdy.mesh @m = <["x"=4]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
    sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
    %0 = sdy.propagation_barrier %arg0 allowed_direction=FORWARD : tensor<8xf32>
    %1 = sdy.all_gather [{"x"}] %arg0 out_sharding=<@m, [{}]> : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
"""
    for equals in (" = ", "= ", " =", "\n=\n"):
        spaced = re.sub(r"(group_id|_direction|out_sharding)=", rf"\1{equals}", text)
        assert spaced != text
        assert str(sw.parse(spaced)) == text
        assert shardy.parse(spaced) == shardy.parse(text)


# ---- modules and functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", "module {\n}\n"),
        ("// nothing", "module {\n}\n"),
        ("module {}", "module {\n}\n"),
        ("module @m {}", "module @m {\n}\n"),
        ('"builtin.module"() ({\n^bb0:\n}) : () -> ()', "module {\n}\n"),
        ('sdy.mesh @m = <["x"=4]>', 'module {\n  sdy.mesh @m = <["x"=4]>\n}\n'),
    ],
)
def test_an_empty_module_is_read_and_printed_as_in_mlir(shardy: ShardyOracle, text: str, printed: str) -> None:
    module = sw.parse(text)
    assert str(module) == printed
    assert sw.parse(str(module)) == module
    assert sw.Module.from_json(module.to_json()) == module
    assert shardy.parse(printed) == shardy.parse(text)


NO_MAIN = "program: must have a function @main, got a module without functions; add func.func @main(...) {...}"


def test_an_empty_module_says_what_is_missing_when_it_is_used() -> None:
    module = sw.parse("module {}")
    for use in (module.propagate, module.sharding_rules, lambda: module.why("x"), lambda: module.apply("localize")):
        with pytest.raises(sw.UnsupportedError) as caught:
            use()
        assert re.sub(r" \(at \S+\)$", "", str(caught.value)) == NO_MAIN


def test_visibility_prints_as_it_was_written(shardy: ShardyOracle) -> None:
    functions = "".join(
        f"  func.func {visibility}@f{i}() {{\n    return\n  }}\n"
        for i, visibility in enumerate(("", "public ", "private ", "nested "))
    )
    text = f"module {{\n{functions}}}\n"
    module = sw.parse(text)
    assert str(module) == text
    assert str(sw.parse(shardy.parse(text))) == text
    assert str(sw.parse(module.as_text(generic=True))) == text
    message = r"the visibility of a function must be public, private or nested, got .own."
    with pytest.raises(sw.ParseError, match=message):
        sw.parse(shardy.parse(text).replace('"nested"', '"own"'))


def test_a_function_without_visibility_is_public() -> None:
    kept = "func.func @g() { return }"
    text = f"module {{ {kept} func.func @main() {{ func.call @g() : () -> () return }} }}"
    inlined = "module {\n  func.func @g() {\n    return\n  }\n  func.func @main() {\n    return\n  }\n}\n"
    assert str(sw.parse(text).apply("inline-calls")) == inlined
    private = text.replace("@g() {", "private @g() {")
    assert "@g" not in str(sw.parse(private).apply("inline-calls"))


# ---- the stage of a program ----------------------------------------------------------------------------------------

ASSIGNED = """module @m attributes {shardwise.stage = "assigned"} {
  sdy.mesh @m = <["x"=4]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
    %0 = sdy.reshard %arg0 <@m, [{}]> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
LOCAL = """module @m attributes {shardwise.stage = "local"} {
  sdy.mesh @m = <["x"=4]>
  func.func @main(%arg0: tensor<2xf32>) -> tensor<8xf32> {
    %0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @m}> \
: (tensor<2xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


CORRECT = "; correct the attribute shardwise.stage of the module"


@pytest.mark.parametrize("text", [ASSIGNED, LOCAL], ids=["assigned", "local"])
def test_a_stage_is_read_among_other_attributes_and_in_every_form(shardy: ShardyOracle, text: str) -> None:
    module = sw.parse(text)
    assert str(module) == text
    assert sw.parse(text.replace("{shardwise", "{a = 1 : i64, shardwise").replace('"} {', '", b} {')) == module
    assert str(sw.parse(shardy.parse(text, unregistered=True))) == text
    assert str(sw.parse(module.as_text(generic=True))) == text
    assert sw.Module.from_json(module.to_json()) == module


def test_a_text_without_a_stage_is_a_global_program_unless_it_has_collectives_of_one_device() -> None:
    without = ASSIGNED.replace('attributes {shardwise.stage = "assigned"} ', "")
    assert str(sw.parse(without)) == without
    assert sw.parse(without) != sw.parse(ASSIGNED)
    for name in ("global", "propagated"):
        assert str(sw.parse(ASSIGNED.replace('"assigned"', f'"{name}"'))) == without
    assert str(sw.parse(LOCAL.replace('attributes {shardwise.stage = "local"} ', ""))) == LOCAL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ASSIGNED.replace('"assigned"', '"done"'),
         "1:41: program text: a stage must be one of global, propagated, assigned, resharded, local, got \"done\""),
        (ASSIGNED.replace("assigned", "resharded"),
         f"4:10: sdy.reshard: must not be in a program at stage resharded{CORRECT}"),
        (ASSIGNED.replace("sdy.reshard", "sdy.sharding_constraint"),
         f"4:10: sdy.sharding_constraint: must not be in a program at stage assigned{CORRECT}"),
        (LOCAL.replace('"local"', '"resharded"'),
         f"4:10: shardwise.all_gather: must not be in a program at stage resharded{CORRECT}"),
    ],
    ids=["unknown", "reshard", "constraint", "local collective"],
)  # fmt: skip
def test_a_stage_that_is_wrong_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(text, "t.mlir")
    assert str(caught.value).startswith(f"{message} (at ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[{}]>]>}", '[{"x"}]>]>}',
         'operands and results must be sharded alike along each factor, got operand 0 dim 0 over {}, result 0 dim 0 '
         'over {"x"}; run assign on the program before (at t.mlir:5)'),
        ('%arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}', '%arg1: tensor<8xf32> {sdy.sharding = '
         '#sdy.sharding<@m, [{"y"}]>}',
         'operands and results must be sharded alike along each factor, got operand 0 dim 0 over {}, operand 1 dim 0 '
         'over {"y"}; run assign on the program before (at t.mlir:5)'),
    ],
    ids=["result", "operand"],
)  # fmt: skip
def test_a_program_that_only_claims_to_be_assigned_is_not_localized(old: str, new: str, message: str) -> None:
    text = """module @m attributes {shardwise.stage = "resharded"} {
  sdy.mesh @m = <["x"=2, "y"=2]>
  func.func @main(%arg0: tensor<8xf32>,
                  %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) -> tensor<8xf32> {
    %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
    assert "stablehlo.add %arg0, %arg1 : tensor<8xf32>" in str(sw.parse(text).apply("localize"))
    with pytest.raises(sw.ShardingError) as caught:
        sw.parse(text.replace(old, new), "t.mlir").apply("localize")
    assert str(caught.value) == f"stablehlo.add: its {message}"


# ---- placements -----------------------------------------------------------------------------------------------------

ROWS = '#shardwise.placement<@m, [{"x"}: 5, {}: 3]> : tensor<17x3xf32>'
ZEROS = "dense<0.000000e+00> : tensor<f32>"
PLACED = f"""module @m attributes {{shardwise.stage = "local"}} {{
  sdy.mesh @m = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<5x3xf32> {{shardwise.placement = {ROWS}}}, %arg1: tensor<3xf32>) -> \
(tensor<5x3xf32> {{shardwise.placement = {ROWS}, shardwise.padding = {ZEROS}}}, tensor<3xf32>) {{
    %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<5x3xf32>, tensor<3xf32>
    return %0#0, %0#1 : tensor<5x3xf32>, tensor<3xf32>
  }}
}}
"""
# 17 rows in blocks of 3 over x=4, y=2: the gather of the minor axis leaves blocks of 6, not of 5.
BLOCKS = """module @m attributes {shardwise.stage = "resharded"} {
  sdy.mesh @m = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<17xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}) -> tensor<17xf32> {
    %0 = sdy.all_gather [{"y"}] %arg0 out_sharding=<@m, [{"x"}]> {shardwise.local_blocks = array<i64: 6>} : \
tensor<17xf32>
    return %0 : tensor<17xf32>
  }
}
"""
# One device has the row, the others have -0.
OWNED = """module @m attributes {shardwise.stage = "resharded"} {
  sdy.mesh @m = <["x"=4]>
  func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<i32>) -> \
tensor<1xf32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] {method = "owned rows", \
sdy.sharding = #sdy.sharding_per_value<[<@m, [{}], unreduced={"x"}>]>, shardwise.owned = true} : \
(tensor<16xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = sdy.all_reduce {"x"} %0 out_sharding=<@m, [{}]> : tensor<1xf32>
    return %1 : tensor<1xf32>
  }
}
"""


@pytest.mark.parametrize("text", [PLACED, BLOCKS, OWNED], ids=["local", "resharded", "owned"])
def test_placements_are_read_in_every_form(shardy: ShardyOracle, text: str) -> None:
    module = sw.parse(text)
    module.verify()
    assert str(module) == text
    assert str(sw.parse(module.as_text(generic=True))) == text
    assert str(sw.parse(shardy.parse(text, unregistered="local" in text.splitlines()[0]))) == text
    assert sw.Module.from_json(module.to_json()) == module


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ROWS, ROWS.replace("17", "18")),
        (ROWS, ROWS.replace("x", "y", 1).replace("17x", "9x")),
        (ZEROS, ZEROS.replace("0.", "1.")),
    ],
    ids=["global type", "axes", "padding"],
)
def test_the_placement_of_an_argument_or_result_is_part_of_the_program(old: str, new: str) -> None:
    assert sw.parse(PLACED.replace(old, new)) != sw.parse(PLACED)


def test_a_placement_without_padding_needs_no_type() -> None:
    even = PLACED.replace("17x3", "20x3").replace(f", shardwise.padding = {ZEROS}", "")
    module = sw.parse(even)
    assert str(module) == even.replace(" : tensor<20x3xf32>", "")
    assert sw.parse(str(module)) == module


def test_placements_inside_a_local_program_are_printed_on_request() -> None:
    columns = (
        f"{{shardwise.placement = [{ROWS}, #shardwise.placement<@m, [{{}}: 3]>], shardwise.padding = [{ZEROS}, unit]}}"
    )
    module = sw.parse(PLACED.replace("barrier", f"barrier {columns}"))
    assert module == sw.parse(PLACED)
    assert str(module) == PLACED
    shown = module._core.text(placements=True)
    assert columns in shown
    assert sw.parse(shown)._core.text(placements=True) == shown


WHOLE_ROWS = f"{{shardwise.placement = {ROWS}}}"


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (PLACED, "17x3xf32>}, ", "21x3xf32>}, ",
         "3:19: sharding: 4 blocks must cover dim 0 of size 21, got blocks of 5; use at least 6"),
        (PLACED, "17x3xf32>}, ", "17x3xf64>}, ",
         "3:19: placement: a local value must have the type of a block, tensor<5x3xf64>, got tensor<5x3xf32>"),
        (PLACED, f"{ROWS}}}, ", '#shardwise.placement<@m, [{"x"}: 4, {}: 3]>}, ',
         "3:19: placement: a local value must have the type of a block, tensor<4x3xf32>, got tensor<5x3xf32>"),
        (PLACED, f"{ROWS}}}, ", '#shardwise.placement<@m, [{"x"}: 9223372036854775807, {}: 3]>}, ',
         "3:19: program text: a tensor must have less than 2^56 elements in 256 dims"),
        (PLACED, f"placement = {ROWS}, shardwise.", "", "3:3: program text: padding must be given with a placement"),
        (PLACED, ZEROS, "dense<0> : tensor<i32>", "3:3: program text: padding must be of the value's dtype"),
        (PLACED, ZEROS, "dense<0.0> : tensor<1xf32>",
         "3:279: program text: padding must be dense<...> of one element"),
        (PLACED, WHOLE_ROWS, f"{{shardwise.placement = [{ROWS}, {ROWS}]}}",
         "3:193: program text: an argument or result must have one placement, got 2"),
        (PLACED, "return %0#0", "return %arg0",
         "3:3: program text: the placement and padding of a value must be equal wherever they are given"),
        (PLACED, "barrier", f"barrier {{shardwise.placement = [{ROWS}, unit, unit]}}",
         "4:12: program text: there must be at most one placement per result"),
        (BLOCKS, "6>", "4>", "4:10: sharding: 4 blocks must cover dim 0 of size 17, got blocks of 4; use at least 5"),
        (BLOCKS, "6>", "6, 6>", "4:10: program text: there must be one block size per dim"),
        (BLOCKS, "array<i64: 6>", "6 : i64",
         "4:92: program text: local blocks must be array<i64: ...>, or unit for the default"),
        (BLOCKS, 'y"}]>}', 'y"}]>, shardwise.local_blocks = array<i64: 3>, shardwise.placement = #shardwise.placement'
         '<@m, [{"x", "y"}: 3]> : tensor<17xf32>}',
         "3:19: program text: local blocks and a placement must not be given together"),
        (BLOCKS, 'sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>', "shardwise.local_blocks = array<i64: 3>",
         "3:19: program text: local blocks must be given with a sharding"),
        (OWNED, "owned = true", "owned = false", "4:173: program text: owned must be true, or left out"),
        (OWNED, 'unreduced={"x"}', 'unreduced=max{"x"}',
         "4:10: placement: an owned value must be an unreduced sum, got max; leave out that it is owned"),
        (OWNED, "tensor<i32>)", "tensor<i32> {shardwise.owned = true})",
         "3:86: program text: owned must be given with a sharding"),
    ],
)  # fmt: skip
def test_a_placement_that_does_not_fit_is_refused_with_its_place(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(text.replace(old, new, 1), "t.mlir")
    assert str(caught.value).startswith(f"{message} (at ")


# ---- manual axes ----------------------------------------------------------------------------------------------------

MANUAL = """module {
  sdy.mesh @m = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@m, DIMS] out_shardings=[<@m, DIMS] \
manual_axes={"x", "y", "z"} (%arg1: tensor<2x4xf32>) {
      sdy.return %arg1 : tensor<2x4xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
""".replace("DIMS", '[{"y", "x"}, {"z"}]>')


def test_manual_axes_are_in_the_order_of_the_mesh(shardy: ShardyOracle) -> None:
    mixed = MANUAL.replace('{"x", "y", "z"}', '{"z", "x", "y"}')
    shardy.parse(mixed)
    module = sw.parse(mixed)
    assert str(module) == MANUAL
    assert module == sw.parse(MANUAL)
    assert shardy.parse(module.as_text(generic=True)) == shardy.parse(MANUAL)
    assert str(sw.parse(shardy.parse(mixed))) == MANUAL
