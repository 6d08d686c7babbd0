# SPDX-License-Identifier: Apache-2.0
"""Texts whose regions or calls do not fit: the op, what must hold, the types, the line and column."""

from __future__ import annotations

import pytest

import shardwise as sw

WHILE = """func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %0:2 = "stablehlo.while"(%n, %x) ({
  ^bb0(%i: tensor<i32>, %v: tensor<4xf32>):
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %v: tensor<4xf32>):
    stablehlo.return %i, %v : tensor<i32>, tensor<4xf32>
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}"""
CASE = """func.func @main(%k: tensor<i32>, %p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%k) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    %1 = stablehlo.abs %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
IF = CASE.replace('stablehlo.case"(%k)', 'stablehlo.if"(%p)').replace(": (tensor<i32>)", ": (tensor<i1>)")
CALL = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}"""
PREDICATE = "    stablehlo.return %p : tensor<i1>"
NEXT = "    stablehlo.return %i, %v : tensor<i32>, tensor<4xf32>"
BODY = "^bb0(%i: tensor<i32>, %v: tensor<4xf32>):\n" + NEXT
SECOND = "    stablehlo.return %1 : tensor<4xf32>"
THIRD = "  }, {\n    stablehlo.return %x : tensor<4xf32>\n  }) : ("


@pytest.mark.parametrize("text", [WHILE, CASE, IF, CALL])
def test_the_texts_are_right_before_the_mistakes(text: str) -> None:
    module = sw.parse(text)
    module.verify()
    assert str(sw.parse(str(module))) == str(module)


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (WHILE, PREDICATE, "    stablehlo.return %i : tensor<i32>",
         "2:10: stablehlo.while: the condition must return one tensor<i1>, got tensor<i32>; return a comparison"),
        (WHILE, PREDICATE, "    stablehlo.return %p, %p : tensor<i1>, tensor<i1>",
         "2:10: stablehlo.while: the condition must return one tensor<i1>, got tensor<i1>, tensor<i1>; "
         "return a comparison"),
        (WHILE, PREDICATE, "    stablehlo.return",
         "2:10: stablehlo.while: the condition must return one tensor<i1>, got no values; return a comparison"),
        (WHILE, PREDICATE, "    %q = stablehlo.reshape %p : (tensor<i1>) -> tensor<1xi1>\n"
         "    stablehlo.return %q : tensor<1xi1>",
         "2:10: stablehlo.while: the condition must return one tensor<i1>, got tensor<1xi1>; return a comparison"),
        (WHILE, NEXT, "    stablehlo.return %v, %i : tensor<4xf32>, tensor<i32>",
         "2:10: stablehlo.while: the body must return values of the operands' types, got tensor<4xf32>, tensor<i32> "
         "for tensor<i32>, tensor<4xf32>; correct what it returns"),
        (WHILE, NEXT, "    stablehlo.return",
         "2:10: stablehlo.while: the body must return values of the operands' types, got no values "
         "for tensor<i32>, tensor<4xf32>; correct what it returns"),
        (WHILE, BODY, BODY.replace("%v: tensor<4xf32>", "%v: tensor<3xf32>").replace("%i, %v :", "%i, %x :"),
         "2:10: stablehlo.while: region 1 must have arguments of the operands' types, got tensor<i32>, tensor<3xf32> "
         "for tensor<i32>, tensor<4xf32>; correct its arguments"),
        (WHILE, f"  }}, {{\n  {BODY}\n", "", "2:10: stablehlo.while: takes 2 regions, got 1"),
        (CASE, SECOND, "    stablehlo.return %k : tensor<i32>",
         "2:8: stablehlo.case: all branches must return values of the same types, got tensor<i32> in branch 1 "
         "for tensor<4xf32>; convert or reshape them"),
        (CASE, SECOND, "    stablehlo.return",
         "2:8: stablehlo.case: all branches must return values of the same types, got no values in branch 1 "
         "for tensor<4xf32>; convert or reshape them"),
        (CASE, "({\n", "({\n  ^bb0(%a: tensor<4xf32>):\n",
         "2:8: stablehlo.case: a branch must have no arguments, got 1 in branch 0; use the values from around it"),
        (CASE.replace(": (tensor<i32>)", ": (tensor<i1>)"), "case\"(%k)", "case\"(%p)",
         "2:8: stablehlo.case: the operand must be tensor<i32>, got tensor<i1>; convert it"),
        (IF.replace(": (tensor<i1>)", ": (tensor<i32>)"), "if\"(%p)", "if\"(%k)",
         "2:8: stablehlo.if: the operand must be tensor<i1>, got tensor<i32>; convert it"),
        (IF, "  }) : (", THIRD, "2:8: stablehlo.if: takes 2 regions, got 3"),
        (CALL, "func.call @f(%x) :",
         '"stablehlo.abs"(%x) ({\n  ^bb0(%b: tensor<f32>):\n    stablehlo.return %b : tensor<f32>\n  }) :',
         "2:8: stablehlo.abs: takes 0 regions, got 1"),
        (CALL, "call @f", "call @g",
         "2:8: func.call: the function called must be one of the module, got @g; define it"),
        (CALL, "-> tensor<4xf32> {\n  return %a : tensor<4xf32>",
         "-> (tensor<4xf32>, tensor<4xf32>) {\n  return %a, %a : tensor<4xf32>, tensor<4xf32>",
         "2:8: func.call: operands and results must have the types of @f, got (tensor<4xf32>) "
         "for (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>); correct the call"),
    ],
)  # fmt: skip
def test_a_region_or_call_that_does_not_fit_is_refused_at_its_op(text: str, old: str, new: str, said: str) -> None:
    assert text.count(old) == 1
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(text.replace(old, new), "t.mlir")
    message = str(caught.value)
    assert message.partition(" (at ")[0] == said
