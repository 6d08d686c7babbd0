# SPDX-License-Identifier: Apache-2.0
"""Wrong programs for the rules of regions, edges and barriers, 27 and 43-52; the form is rows.py's.

A manual computation is written ``in | out | manual axes | local type``, and what is in its region after ``on``.
"""

from __future__ import annotations

from tests.conformance.shardy.verification.rows import cases, ops


def manual(text: str, body: str) -> str:
    """A manual computation of one tensor<8x8xf32>; its region returns %1 where it has a body, else its argument %a."""
    inside, outside, axes, local = (piece.strip() for piece in text.split(" | "))
    kinds = local.split(", ")
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in zip("ab", kinds))
    value = "%arg0" if body == "return %arg0" else "%1" if body else "%a"
    lines = [f"  {body}"] if body and not body.startswith("return") else []
    return ops(
        f"%0 = sdy.manual_computation(%arg0) in_shardings=[{inside}] out_shardings=[{outside}] "
        f"manual_axes={{{axes}}} ({arguments}) {{",
        *lines,
        f"  sdy.return {value} : {kinds[0]}",
        "} : (tensor<8x8xf32>) -> tensor<8x8xf32>",
    )


def named(text: str, body: str) -> str:
    """A named computation of one tensor<8x8xf32>: its shardings | its arguments | what it returns | its type."""
    shardings, arguments, returned, kind = (piece.strip() for piece in text.split(" | "))
    lines = [f"  {body}"] if body else []
    return ops(
        f'%0 = sdy.named_computation<"f">(%arg0) {shardings} ({arguments}) {{',
        *lines,
        f"  sdy.return {returned}",
        f"}} : {kind}",
    )


def lines(text: str, _: str) -> str:
    return ops(*text.split(" / "))


MANUAL_CASES = cases(
    manual,
    """
43 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>

43 <@mesh, [{}, {}]>, <@mesh, [{}, {}]> | <@mesh, [{}, {}]> |  | tensor<8x8xf32>
! 'sdy.manual_computation' must have 1 shardings of arguments, got 2

43  | <@mesh, [{}, {}]> |  | tensor<8x8xf32>
! 'sdy.manual_computation' must have 1 shardings of arguments, got 0

43 <@mesh, [{}, {}]> |  |  | tensor<8x8xf32>
! 'sdy.manual_computation' must have 1 sharding, got 0

43 <@mesh, [{}, {}]> | <@mesh, [{}, {}]>, <@mesh, [{}, {}]> |  | tensor<8x8xf32>
! 'sdy.manual_computation' must have 1 sharding, got 2

13 <@mesh, [{}]> | <@mesh, [{}, {}]> |  | tensor<8x8xf32>
! it must have one entry per dim of the tensor, got 1 for shape [8, 8]

17 <@mesh, [{}, {}]> | <@mesh, [{"a", "a"}, {}]> |  | tensor<8x8xf32>
! an axis must be used once, got "a" again in dim 0

44 <@mesh, [{"b", "a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
! in dim 0 of the sharding of operand 0 manual axes must come before free ones, got {"b", "a"}

44 <@mesh, [{"a"}, {}]> | <@mesh, [{}, {"b", "a"}]> | "a" | tensor<4x8xf32>
! in dim 1 of the sharding of result 0 manual axes must come before free ones, got {"b", "a"}

44 <@mesh, [{"a", "b"}, {}]> | <@mesh, [{"a"}, {"b"}]> | "a" | tensor<4x8xf32>

45 <@mesh, [{"c"}, {}]> | <@mesh, [{"c"}, {}]> | "c" | tensor<1x8xf32>
! the size of dim 0 of operand 0 must be a multiple of its 12 manual parts, got tensor<8x8xf32>; pad it

46 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<8x8xf32>
! the region must see operand 0 as tensor<4x8xf32>, got tensor<8x8xf32>

46 <@mesh, [{"a"}, {}]> | <@mesh, [{}, {}]> | "a" | tensor<4x8xf32>
! the region must see result 0 as tensor<8x8xf32>, got tensor<4x8xf32>

46 <@mesh, [{}, {}]> | <@mesh, [{}, {}]> |  | tensor<8x8xf64>
! the region must see operand 0 as tensor<8x8xf32>, got tensor<8x8xf64>

46 <@mesh, [{}, {}]> | <@mesh, [{}, {}]> |  | tensor<8x8xf32>, tensor<8x8xf32>
! the region must have an argument for each operand and return a value for each result, got 2 arguments for 1 operands

47 <@mesh, [{"a"}, {}]> | <@other, [{"a"}, {}]> | "a" | tensor<4x8xf32>
! all its shardings must be of one mesh, got @mesh and @other

47 <@xy, [{"x"}, {}]> | <@yx, [{"x"}, {}]> | "x" | tensor<4x8xf32>
! all its shardings must be of one mesh, got @xy and @yx

47 <@xy, [{"x"}, {}]> | <@same, [{"x"}, {}]> | "x" | tensor<4x8xf32>

47 <@mesh, [{}, {}]> | <@other, [{}, {}]> |  | tensor<8x8xf32>

48 <@mesh, [{}, {}]> | <@mesh, [{}, {}]> | "q" | tensor<8x8xf32>
! a manual axis must be of mesh @mesh, got "q"

48 <@mesh, [{"b":(1)2}, {}]> | <@mesh, [{"b":(1)2}, {}]> | "b":(1)2 | tensor<4x8xf32>
! a manual axis must be a whole axis, got "b":(1)2

48 <@mesh, [{"b":(1)2}, {"b":(2)2}]> | <@mesh, [{"b":(1)2}, {"b":(2)2}]> | "b", "a" | tensor<4x4xf32>

49 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] \
manual_axes={"a"} (%b: tensor<4x8xf32>) { sdy.return %b : tensor<4x8xf32> } : (tensor<4x8xf32>) -> tensor<4x8xf32>
! an axis that a manual computation around it has taken cannot be used, got "a"; use a free axis

49 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] \
manual_axes={} (%b: tensor<4x8xf32>) { sdy.return %b : tensor<4x8xf32> } : (tensor<4x8xf32>) -> tensor<4x8xf32>
! an axis that a manual computation around it has taken cannot be used, got "a"

49 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] \
manual_axes={"b"} (%b: tensor<4x2xf32>) { sdy.return %b : tensor<4x2xf32> } : (tensor<4x8xf32>) -> tensor<4x8xf32>

49 <@mesh, [{}, {}]> | <@mesh, [{}, {}]> |  | tensor<8x8xf32>
on %1 = stablehlo.abs %arg0 : tensor<8x8xf32>
! its region must use no value from around it, got stablehlo.abs with one; make it an operand

49 <@mesh, [{}, {}]> | <@mesh, [{}, {}]> |  | tensor<8x8xf32>
on return %arg0
! its region must use no value from around it, got what the region returns with one

27 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = sdy.sharding_constraint %a <@mesh, [{"a"}, {}]> : tensor<4x8xf32>
! sdy.sharding_constraint: an axis that a manual computation around it has taken cannot be used, got "a"

27 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = stablehlo.abs %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : tensor<4x8xf32>
! stablehlo.abs: an axis that a manual computation around it has taken cannot be used, got "a"

27 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = sdy.sharding_constraint %a <@mesh, [{}, {}], replicated={"a"}> : tensor<4x8xf32>
! an axis that a manual computation around it has taken cannot be used, got "a"

27 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = sdy.sharding_constraint %a <@other, [{"a"}, {}]> : tensor<4x8xf32>
! an axis that a manual computation around it has taken cannot be used, got "a"

27 <@mesh, [{"b"}, {}]> | <@mesh, [{"b"}, {}]> | "b" | tensor<2x8xf32>
on %1 = sdy.sharding_constraint %a <@mesh, [{"b":(1)2}, {}]> : tensor<2x8xf32>
! an axis that a manual computation around it has taken cannot be used, got "b":(1)2

27 <@mesh, [{"a"}, {}]> | <@mesh, [{"a"}, {}]> | "a" | tensor<4x8xf32>
on %1 = sdy.sharding_constraint %a <@mesh, [{"b"}, {}]> : tensor<4x8xf32>
""",
)

NAMED_CASES = cases(
    named,
    """
50  | %a: tensor<8x8xf32> | %a : tensor<8x8xf32> | (tensor<8x8xf32>) -> tensor<8x8xf32>

50  | %a: tensor<8x8xf32>, %b: tensor<8x8xf32> | %a : tensor<8x8xf32> | (tensor<8x8xf32>) -> tensor<8x8xf32>
! the region must have an argument for each operand and return a value for each result, got 2 arguments for 1 operands

50  | %a: tensor<8xf32> | %a : tensor<8xf32> | (tensor<8x8xf32>) -> tensor<8xf32>
! argument 0 of the region must have the type of its operand, got tensor<8xf32> for tensor<8x8xf32>

50  | %a: tensor<8x8xf32> | %a, %a : tensor<8x8xf32>, tensor<8x8xf32> | (tensor<8x8xf32>) -> tensor<8x8xf32>
! the region must have an argument for each operand and return a value for each result

50  | %a: tensor<8x8xf32> | %a : tensor<8x8xf32> | (tensor<8x8xf32>) -> tensor<8xf32>
! value 0 that the region returns must have the type of its result, got tensor<8x8xf32> for tensor<8xf32>

50 in_shardings=[] | %a: tensor<8x8xf32> | %a : tensor<8x8xf32> | (tensor<8x8xf32>) -> tensor<8x8xf32>
! 'sdy.named_computation' must have 1 shardings of arguments, got 0

50 in_shardings=[<@mesh, [{}]>] | %a: tensor<8x8xf32> | %a : tensor<8x8xf32> | (tensor<8x8xf32>) -> tensor<8x8xf32>
! it must have one entry per dim of the tensor, got 1 for shape [8, 8]

50  | %a: tensor<8x8xf32> | %1 : tensor<8x8xf32> | (tensor<8x8xf32>) -> tensor<8x8xf32>
on %1 = stablehlo.abs %arg0 : tensor<8x8xf32>
! its region must use no value from around it, got stablehlo.abs with one; make it an operand
""",
)

LINE_CASES = cases(
    lines,
    """
51 %1 = stablehlo.abs %arg0 : tensor<8x8xf32> / %0 = sdy.data_flow_edge %1 : tensor<8x8xf32>

51 %0 = sdy.data_flow_edge %arg0 : tensor<8x8xf32>

51 %1 = stablehlo.abs %arg0 : tensor<8x8xf32> / %0 = sdy.data_flow_edge %1 : tensor<8x8xf32> / \
%2 = stablehlo.abs %1 : tensor<8x8xf32>
! sdy.data_flow_edge: its operand must have no other user, got 1 more; let them use the result

51 %1 = sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32> / \
%0 = sdy.data_flow_edge %1 : tensor<8x8xf32>
! sdy.data_flow_edge: its operand must not be the result of an annotation, got sdy.sharding_constraint

51 %1 = stablehlo.abs %arg0 : tensor<8x8xf32> / %0 = sdy.data_flow_edge %1 sharding=<@mesh, [{}]> : tensor<8x8xf32>
! it must have one entry per dim of the tensor, got 1 for shape [8, 8]

52 %0 = sdy.propagation_barrier %arg0 allowed_direction=BOTH : tensor<8x8xf32>
! allowed_direction must be NONE, FORWARD or BACKWARD, got BOTH; leave the barrier out for BOTH

52 %0 = sdy.propagation_barrier %arg0 allowed_direction=NONE : tensor<8x8xf32>
""",
)

REGION_CASES = [*MANUAL_CASES, *NAMED_CASES, *LINE_CASES]
