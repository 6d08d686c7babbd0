# SPDX-License-Identifier: Apache-2.0
"""A wrong program for each verification rule of Shardy's representation, and what our message says.

Rules are numbered: meshes 1-7, shardings 8-30, sharding rules of ops 31-42, regions, edges and annotations 43-54,
Shardy's collectives 55-65. A case is three lines or more:

    58 all_gather [{"x"}, {}] %arg0 out_sharding=<@xy, [{}, {}]>     the rule, and the text that a frame is put around
    on @xy, [{}, {}]                                                 the type of a value, or the sharding of an operand
    ! {"x"} must be the last axes of dim 0 of the operand            a part of our message
    ~ why jaxlib takes this text                                     without this line jaxlib refuses it, too

A case without `!` is a text that both take: the near miss of a rule. Rules 27 and 43-52
are in region_rows.py, 55-65 in collective_rows.py.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

MESHES = """sdy.mesh @mesh = <["a"=2, "b"=4, "c"=12]>
  sdy.mesh @other = <["a"=2, "b"=4]>
  sdy.mesh @single = <[], device_ids=[3]>
  sdy.mesh @xy = <["x"=2, "y"=2, "z"=4]>
  sdy.mesh @same = <["x"=2, "y"=2, "z"=4]>
  sdy.mesh @yx = <["x"=2, "y"=2, "z"=4], device_ids=[15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>"""


@dataclasses.dataclass
class Case:
    rule: int
    text: str
    says: str | None  # a part of our message; None: both take the text
    accepted: str | None  # why jaxlib takes what we refuse


# ---- frames ---------------------------------------------------------------------------------------------------------


def module(body: str, meshes: str = MESHES) -> str:
    return f"module {{\n  {meshes}\n{body}\n}}\n"


def ops(*lines: str, arguments: str = "%arg0: tensor<8x8xf32>") -> str:
    """A function of these ops without results."""
    body = "\n".join("    " + line for line in lines)
    return module(f"  func.func @main({arguments}) {{\n{body}\n    return\n  }}")


def mesh(text: str, _: str) -> str:
    function = "  func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n    return %arg0 : tensor<8xf32>\n  }"
    return module(function, f"sdy.mesh @m = {text}")


def argument(sharding: str, kind: str = "") -> str:
    """A function whose argument has this sharding, ``@mesh, [...]``, or this whole attribute."""
    kind = kind or "tensor<8x8xf32>"
    attribute = sharding if sharding.startswith("#") else f"#sdy.sharding<{sharding}>"
    return module(
        f"  func.func @main(%arg0: {kind} {{sdy.sharding = {attribute}}}) -> {kind} {{\n    return %arg0 : {kind}\n  }}"
    )


def attribute(text: str, argument: str = "") -> str:
    """One op with this dictionary, on an argument with a sharding."""
    sharding = f" {{sdy.sharding = #sdy.sharding<{argument}>}}" if argument else ""
    line = f"%0 = stablehlo.add %arg0, %arg1 {{{text}}} : tensor<8x8xf32>"
    return ops(line, arguments=f"%arg0: tensor<8x8xf32>{sharding}, %arg1: tensor<8x8xf32>")


def edges(text: str, argument: str = "") -> str:
    return attribute(f"sdy.propagation_edges = #sdy.propagation_edges<{text}>", argument)


def annotation(line: str, _: str) -> str:
    return ops(f"%0 = sdy.{line} : tensor<8x8xf32>")


def without_results(attribute: str, _: str) -> str:
    dictionary = f"{{has_side_effect = true, sdy.sharding = {attribute}}}"
    return ops(f"stablehlo.custom_call @print(%arg0) {dictionary} : (tensor<8x8xf32>) -> ()")


def rule(text: str, _: str = "") -> str:
    """A matrix product of 8x4 and 4x16 with this sharding rule; ``…`` is the sizes of its factors."""
    text = text.replace("…", "{i=8, j=16, k=4}")
    return ops(
        "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding_rule = "
        f"#sdy.op_sharding_rule<{text}>}} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>",
        arguments="%arg0: tensor<8x4xf32>, %arg1: tensor<4x16xf32>",
    )


def collective(line: str, operand: str) -> str:
    """One collective on %arg0, whose sharding is ``operand``: as many dims of size 16 as that, or its result's, has."""
    sharding = f" {{sdy.sharding = #sdy.sharding<{operand}>}}" if operand else ""
    dims = re.findall(r", \[(.*?)\]", operand or line)[-1]
    kind = f"tensor<{'16x' * dims.count('{')}f32>"
    return ops(f"%0 = sdy.{line} : {kind}", arguments=f"%arg0: {kind}{sharding}")


def cases(frame: Callable[[str, str], str], table: str) -> list[Case]:
    found: list[Case] = []
    for block in table.strip().split("\n\n"):
        entries: dict[str, str] = {}
        first, *others = block.splitlines()
        for line in others:
            mark, _, text = line.strip().partition(" ")
            assert mark in ("on", "!", "~"), line
            assert mark not in entries, line
            entries[mark] = text
        number, _, text = first.strip().partition(" ")
        found.append(Case(int(number), frame(text, entries.get("on", "")), entries.get("!"), entries.get("~")))
    return found


# ---- tables ---------------------------------------------------------------------------------------------------------

MESH_CASES = cases(
    mesh,
    """
1 <["x"=0]>
! the size of an axis must be at least 1, got "x"=0; leave the axis out or give it size 1

1 <["x"=-2]>
! the size of an axis must be at least 1, got "x"=-2

1 <["x"=1]>

2 <["x"=2], device_ids=[-1, 0]>
! device ids must not be negative, got -1

2 <[], device_ids=[-1]>
! device ids must not be negative, got -1

2 <[], device_ids=[7]>

3 <[], device_ids=[0, 1]>
! a mesh without axes must have at most one device id, got 2 ids; name the axis that holds them

3 <[]>

4 <["x"=2, "y"=2, "x"=3]>
! axis names must differ, got "x" twice in ["x"=2, "y"=2, "x"=3]

5 <["x"=2, "y"=2], device_ids=[0, 1]>
! the number of device ids must be the product of the axis sizes, got 2 ids for the 4 devices of ["x"=2, "y"=2]

6 <["x"=2], device_ids=[1, 1]>
! device ids must be a permutation of 0 to 1, got 1 twice

6 <["x"=2], device_ids=[1, 2]>
! device ids must be a permutation of 0 to 1, got 2

7 <["x"=2], device_ids=[0, 1]>
""",
)

SHARDING_CASES = cases(
    argument,
    """
8 @nowhere, [{}, {}]
! a mesh must be declared, got @nowhere; declare it, or write mesh<[...]>

9 @single, [{}, {}]
! on the single device of mesh @single no dim or axis can be named, got 2 dims, 0 replicated and 0 unreduced axes

9 mesh<[], device_ids=[0]>, [{}, {}]
! on the single device of mesh mesh<[], device_ids=[0]> no dim or axis can be named, got 2 dims

9 @single, []

10 @mesh, [{}]
on tuple<tensor<8xf32>, tensor<8xf32>>
! a type must be a tensor with static shape

11 @mesh, [{}]
on !stablehlo.token
! that of a token must be of no dims and no axes, got [{}]; write []

11 @mesh, [], replicated={"a"}
on !stablehlo.token
! that of a token must be of no dims and no axes, got [], replicated={"a"}; write []

11 @mesh, []
on !stablehlo.token

12 @mesh, []
on tensor<*xf32>
! a dim must have a static size, got tensor<*

13 @mesh, [{}]
! it must have one entry per dim of the tensor, got 1 for shape [8, 8]; write {} for a dim that is not sharded

13 @mesh, [{}, {}, {}]
! it must have one entry per dim of the tensor, got 3 for shape [8, 8]

14 @mesh, [{"a"}p-1, {}]
! a priority must be 'p' and a number, such as p1, got "p"

15 @mesh, [{}p1, {}]
! dim 0 is closed and without axes, so it must have no priority, got {}p1; drop the priority, or open the dim: {?}

15 @mesh, [{?}p1, {"a"}p2]

16 @mesh, [{"d"}, {}]
! an axis must be of mesh @mesh, got "d"; use one of "a", "b", "c"

16 @mesh, [{}, {}], replicated={"d"}
! an axis must be of mesh @mesh, got "d"

16 @mesh, [{}, {}], unreduced={"d"}
! an axis must be of mesh @mesh, got "d"

17 @mesh, [{"a", "a"}, {}]
! an axis must be used once, got "a" again in dim 0; use another axis, or split this one into sub-axes

17 @mesh, [{"a"}, {"a"}]
! an axis must be used once, got "a" again in dim 1

17 @mesh, [{"a"}, {}], replicated={"a"}
! an axis must be used once, got "a" again in replicated

17 @mesh, [{}, {}], replicated={"a"}, unreduced={"a"}
! an axis must be used once, got "a" again in unreduced

17 @mesh, [{"b":(1)2}, {"b":(1)2}]
! an axis must be used once, got "b":(1)2 again in dim 1

17 @mesh, [{"b":(1)2}, {"b":(2)2}]

18 @mesh, [{"b":(1)2, "b":(2)2}, {}]
! sub-axes of dim 0 that follow each other must be merged, got {"b":(1)2, "b":(2)2}; write {"b"}

18 @mesh, [{}, {}], replicated={"b":(1)2, "b":(2)2}
! sub-axes of replicated that follow each other must be merged

18 @mesh, [{"b":(2)2, "b":(1)2}, {}]

19 @mesh, [{}, {}], replicated={"b", "a"}
! replicated axes must be in the order of mesh @mesh, got {"b", "a"}; write {"a", "b"}

20 @mesh, [{}, {}], unreduced={"b", "a"}
! unreduced axes must be in the order of mesh @mesh, got {"b", "a"}; write {"a", "b"}

21 @mesh, [{"b"}, {"b":(1)2}]
! an axis and a sub-axis of it must not both be used, got "b":(1)2 and "b"; split the whole axis into sub-axes too

22 @mesh, [{"b":(0)2}, {}]
! the pre-size of a sub-axis must be at least 1, got "b":(0)2 of "b"=4

23 @mesh, [{"b":(2)1}, {}]
! the size of a sub-axis must be greater than 1, got "b":(2)1 of "b"=4

24 @mesh, [{"b":(1)3}, {}]
! pre-size times size of a sub-axis must divide the size of its axis, got "b":(1)3 of "b"=4

25 @mesh, [{"b":(1)4}, {}]
! a sub-axis must be smaller than its axis, got "b":(1)4 of "b"=4; write "b"

26 @mesh, [{"c":(1)6}, {"c":(3)4}]
! sub-axes of one axis must not overlap, got "c":(1)6 and "c":(3)4; use disjoint digits of the axis

26 @mesh, [{"c":(1)2}, {"c":(3)2}]
! sub-axes of one axis must be digits of one split of it, got "c":(1)2 and "c":(3)2 of size 12
~ it does not check that both can be cut from the axis at once; no group of devices would match them

30 #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>
! expected '<' before a sharding, got "_per_value"
""",
)

ATTRIBUTE_CASES = cases(
    attribute,
    """
29 sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>]>
! 'stablehlo.add' must have 1 sharding, got 2

29 sdy.sharding = #sdy.sharding_per_value<[]>
! 'stablehlo.add' must have 1 sharding, got 0

29 sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>

30 sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>
! the shardings of an op must be one for each result, got "#"; write #sdy.sharding_per_value<[<@mesh, […]>]>

30 sdy.sharding = 1 : i64
! the shardings of an op must be one for each result

30 sdy.sharding_rule = 1 : i64
! its sharding rule must be #sdy.op_sharding_rule<…>, got 1 : i64

54 sdy.propagation_edges = 1 : i64
! its propagation edges must be #sdy.propagation_edges<[…]>, got 1 : i64
""",
)

RULE_CASES = cases(
    rule,
    """
31 ([i, k])->([i, j]) …
! its sharding rule must have a mapping for each of the op's operands, got 1 for 2

31 ([i, k], [k, j])->([i, j], [i]) …
! its sharding rule must have a mapping for each of the op's results, got 2 for 1

31 ([i, k], [k, j])->([i, j]) …

32 ()->()
! its sharding rule must map an operand or a result

34 ([i], [k, j])->([i, j]) …
! must have an entry for each dim of operand 0, got 1 for tensor<8x4xf32>; write [] for a scalar

34 ([i, k], [k, j])->([i, j, k]) …
! must have an entry for each dim of result 0, got 3 for tensor<8x16xf32>

35 ([i, ], [k, j])->([i, j]) …
! must give operand 0 dim 1 a factor, got none; give it one of its own

36 ([i, k], [k, l])->([i, j]) …
! must give the size of every factor, got l in operand 1 dim 1 without one

36 ([i, k], [k, j])->([i, j])
! must give the size of every factor, got i in operand 0 dim 0 without one

37 ([ik, k], [k, j])->([i, j]) …
! must use a factor once in a tensor, got k again in operand 0 dim 1

37 ([ii, k], [k, j])->([i, j]) …
! must use a factor once in a tensor, got i again in operand 0 dim 0

38 ([il, k], [k, j])->([i, j]) {i=8, j=16, k=4, l=1}
! must not have a factor of size 1 beside others in operand 0 dim 0, got l; leave it out

38 ([ll, k], [k, j])->([i, j]) {i=8, j=16, k=4, l=1}
! must not have a factor of size 1 beside others in operand 0 dim 0

39 ([i, k], [k, j])->([i, j]) {i=8, j=16, k=4, l=2}
! must use every factor, got l in no dim; drop its size

39 ([i, k], [k, j])->([i, j]) {i=8, j=16, k=4, l=2} reduction={k, k}
! must use every factor

40 ([i, k], [k, j])->([i, j]) … permutation={j, i}
! must list factors in their order, got permutation={j, i}; sort them

40 ([i, k], [k, j])->([i, j]) … reduction={k, k}
! must list a factor once, got reduction={k, k}

40 ([i, k], [k, j])->([i, j]) … need_replication={l}
! must list factors that it has, got need_replication={l}

40 ([i, k], [k, j])->([i, j]) … blocked_propagation={j, i}
! must list factors in their order, got blocked_propagation={j, i}

40 ([i, k], [k, j])->([i, j]) … reduction={i} permutation={j, i}
! must list factors in their order, got permutation={j, i}

41 ([i, k], [k, j])->([i, j]) … reduction={k} need_replication={k}
! of reduction, need_replication and permutation, got k in reduction and need_replication

41 ([i, k], [k, j])->([i, j]) … reduction={k} permutation={k}
! of reduction, need_replication and permutation, got k in reduction and permutation

41 ([i, k], [k, j])->([i, j]) … need_replication={k} permutation={k}
! of reduction, need_replication and permutation, got k in need_replication and permutation

41 ([i, k], [k, j])->([i, j]) … need_replication={k} blocked_propagation={i, k}, custom

42 ([i, k], [k, j])->([i, j]) … reduction={i}
! must not have a factor that is reduced in a result, got i in result 0

42 ([i, k], [k, j])->([i, j]) … reduction={k}
""",
)

WITHOUT_RESULTS_CASES = cases(
    without_results,
    """
29 #sdy.sharding_per_value<[<@single, []>, <@single, []>]>
! an op without results must have at most one sharding, got 2

29 #sdy.sharding_per_value<[<@single, []>]>

29 #sdy.sharding_per_value<[<@mesh, []>]>

29 #sdy.sharding_per_value<[]>

9 #sdy.sharding_per_value<[<@mesh, [{}]>]>
! the sharding of an op without results must be of no dims and no axes, got [{}]; write []

9 #sdy.sharding_per_value<[<@mesh, [], replicated={"a"}>]>
! the sharding of an op without results must be of no dims and no axes, got [], replicated={"a"}

30 #sdy.sharding<@single, []>
! the shardings of an op must be one for each result
""",
)

ANNOTATION_CASES = cases(
    annotation,
    """
53 reshard %arg0 <@mesh, [{"a"}]>
! it must have one entry per dim of the tensor, got 1 for shape [8, 8]

53 sharding_constraint %arg0 <@mesh, [{"a"}]>
! it must have one entry per dim of the tensor, got 1 for shape [8, 8]

53 sharding_constraint %arg0 <@mesh, [{"a"}, {"a"}]>
! an axis must be used once, got "a" again in dim 1
""",
)

EDGE_CASES = cases(
    edges,
    """
54 [{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}, {"b":(1)2 = result-0 -> [operand-0]}]}]
on @mesh, [{"a"}, {}]

54 []
on @mesh, [{"a"}, {}]
! its propagation edges must be #sdy.propagation_edges<[…]>

54 [{step-0 = [{"a" = operand-0 -> [result-0]}]}, {step-0 = [{"a" = operand-0 -> [result-0]}]}]
on @mesh, [{"a"}, {}]
! in its propagation edges a step must be given once, got step-0 again

54 [{step--1 = [{"a" = operand-0 -> [result-0]}]}]
on @mesh, [{"a"}, {}]
! a step must not be negative, got -1

54 [{step-0 = [{"a" = operand-0 -> [operand-0]}]}]
on @mesh, [{"a"}, {}]
! a source must not be a target, got operand-0

54 [{step-0 = [{"a" = operand-0 -> [result-0, result-0]}]}]
on @mesh, [{"a"}, {}]
! a target must be named once, got result-0

54 [{step-0 = [{"a" = operand-2 -> [result-0]}]}]
on @mesh, [{"a"}, {}]
! there are 2 operands, counted from 0, got operand-2

54 [{step-0 = [{"a" = operand-0 -> [result-1]}]}]
on @mesh, [{"a"}, {}]
! there are 1 results, counted from 0, got result-1

54 [{step-0 = [{"q" = operand-0 -> [result-0]}]}]
on @mesh, [{"a"}, {}]
! an axis must be of mesh @mesh, got "q"

54 [{step-0 = [{"a" = other-0 -> [result-0]}]}]
on @mesh, [{"a"}, {}]
! its propagation edges must be #sdy.propagation_edges<[…]>

54 [{step-0 = [{"a" = operand-0 -> [result-0]}]}]
! an operand or a result must have a sharding, got none
""",
)
