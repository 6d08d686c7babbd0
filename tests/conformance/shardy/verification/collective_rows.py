# SPDX-License-Identifier: Apache-2.0
"""Wrong programs for the rules of Shardy's collectives, 55-65; the form is rows.py's."""

from __future__ import annotations

from tests.conformance.shardy.verification.rows import cases, collective

COLLECTIVE_CASES = cases(
    collective,
    """
55 all_gather [{"x"}, {}] %arg0 out_sharding=<@xy, [{}, {}]>
! sdy.all_gather: its operand must have a sharding, got none; annotate it

55 all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@xy, [{}, {"x"}]>
! sdy.all_to_all: its operand must have a sharding

55 collective_permute %arg0 out_sharding=<@xy, [{"x"}, {}]>
! sdy.collective_permute: its operand must have a sharding

55 sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@xy, [{}, {}], unreduced={"x"}>
! sdy.sharded_to_unreduced: its operand must have a sharding

55 replicated_to_unreduced {"x"} %arg0 out_sharding=<@xy, [{}, {}], unreduced={"x"}>
! sdy.replicated_to_unreduced: its operand must have a sharding

55 all_slice [{"x"}, {}] %arg0 out_sharding=<@xy, [{"x"}, {}]>

55 all_reduce {"x"} %arg0 out_sharding=<@xy, [{}, {}]>

55 reduce_scatter [{"x"}, {}] %arg0 out_sharding=<@xy, [{"x"}, {}]>

56 all_gather [{"a"}, {}] %arg0 out_sharding=<@other, [{}, {}]>
on @mesh, [{"a"}, {}]
! operand and result must be on one mesh, got @mesh and @other

56 all_slice [{"a"}, {}] %arg0 out_sharding=<@other, [{"a"}, {}]>
on @mesh, [{}, {}]
! operand and result must be on one mesh, got @mesh and @other

56 all_to_all [{"a"}: 0->1] %arg0 out_sharding=<@other, [{}, {"a"}]>
on @mesh, [{"a"}, {}]
! operand and result must be on one mesh, got @mesh and @other

56 all_reduce {"b"} %arg0 out_sharding=<@other, [{"a"}, {}]>
on @mesh, [{"a"}, {}]
! operand and result must be on one mesh, got @mesh and @other

56 reduce_scatter [{"b"}, {}] %arg0 out_sharding=<@other, [{"b"}, {}]>
on @mesh, [{}, {}]
! operand and result must be on one mesh, got @mesh and @other

56 all_gather [{"x"}, {}] %arg0 out_sharding=<@yx, [{}, {}]>
on @xy, [{"x"}, {}]
! operand and result must be on one mesh, got @xy and @yx

56 collective_permute %arg0 out_sharding=<@other, [{}, {"a"}]>
on @mesh, [{"a"}, {}]
! the meshes of operand and result must have the same axes, got <["a"=2, "b"=4, "c"=12]> and <["a"=2, "b"=4]>

56 collective_permute %arg0 out_sharding=<@same, [{"x"}, {}]>
on @xy, [{"x"}, {}]
! two meshes must have their devices in different orders, got @xy and @same; use one of them

56 collective_permute %arg0 out_sharding=<@yx, [{"x"}, {}]>
on @xy, [{"x"}, {}]

57 all_gather [{"x"}] %arg0 out_sharding=<@xy, [{}]>
on @xy, [{"x"}, {}]
! it must have one entry per dim of the tensor, got 1 for shape [16, 16]

57 all_gather [{"x"}] %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{"x"}, {}]
! sdy.all_gather: there must be a list of axes for each dim of the result, got 1 for 2

57 all_slice [{"x"}] %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{}, {}]
! sdy.all_slice: there must be a list of axes for each dim of the result, got 1 for 2

57 reduce_scatter [{"x"}, {}, {}] %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{}, {}]
! sdy.reduce_scatter: there must be a list of axes for each dim of the result, got 3 for 2

57 sharded_to_unreduced [{"x"}] %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{"x"}, {}]
! sdy.sharded_to_unreduced: there must be a list of axes for each dim of the result, got 1 for 2

58 all_gather [{"x"}, {}] %arg0 out_sharding=<@xy, [{"y"}, {}]>
on @xy, [{"x", "y"}, {}]
! {"x"} must be the last axes of dim 0 of the operand, got {"x", "y"}

58 all_gather [{"x"}, {}] %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{}, {}]
! {"x"} must be the last axes of dim 0 of the operand, got {}

58 all_gather [{"z"}, {}] %arg0 out_sharding=<@xy, [{"z"}, {}]>
on @xy, [{"z"}, {}]
! dim 0 of the result must be sharded along {}, got {"z"}

58 all_gather [{"z":(1)2}, {}] %arg0 out_sharding=<@xy, [{"z":(2)2}, {}]>
on @xy, [{"z"}, {}]
! {"z":(1)2} must be the last axes of dim 0 of the operand, got {"z"}

58 all_gather [{"q"}, {}] %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{"z"}, {}]
! an axis must be of mesh @xy, got "q"

58 all_gather [{"x"}, {"x"}] %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{"x"}, {}]
! an axis must be used once, got "x" again in dim 1

58 all_gather [{"z":(2)2}, {}] %arg0 out_sharding=<@xy, [{"z":(1)2}, {}]>
on @xy, [{"z"}, {}]

58 all_gather [{"y"}, {"z"}] %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{"x", "y"}, {"z"}]

59 all_slice [{"x"}, {}] %arg0 out_sharding=<@xy, [{"x", "y"}, {}]>
on @xy, [{"y"}, {}]
! dim 0 of the result must be sharded along {"y", "x"}, got {"x", "y"}

59 all_slice [{"x"}, {}] %arg0 out_sharding=<@xy, [{"y"}, {}]>
on @xy, [{"y"}, {}]
! dim 0 of the result must be sharded along {"y", "x"}, got {"y"}

59 all_slice [{"z":(2)2}, {}] %arg0 out_sharding=<@xy, [{"z":(1)2, "z":(2)2}, {}]>
on @xy, [{"z":(1)2}, {}]
! sub-axes of dim 0 that follow each other must be merged

59 all_slice [{"z":(2)2}, {}] %arg0 out_sharding=<@xy, [{"z"}, {}]>
on @xy, [{"z":(1)2}, {}]

60 all_to_all [] %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{"x"}, {}]
! there must be a move, got none

60 all_to_all [{}: 0->1] %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{"x"}, {}]
! a move must have axes, got none

60 all_to_all [{"x"}: 0->2] %arg0 out_sharding=<@xy, [{}, {"x"}]>
on @xy, [{"x"}, {}]
! the dims of a move must be from 0 to 1, got 2

60 all_to_all [{"x"}: -1->1] %arg0 out_sharding=<@xy, [{}, {"x"}]>
on @xy, [{"x"}, {}]
! the dims of a move must be from 0 to 1, got -1

60 all_to_all [{"x"}: 0->0] %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{"x"}, {}]
! a dim must be in one move, as its source or its target, got dim 0 again

60 all_to_all [{"x"}: 0->1, {"y"}: 1->0] %arg0 out_sharding=<@xy, [{"y"}, {"x"}]>
on @xy, [{"x"}, {"y"}]
! a dim must be in one move, as its source or its target, got dim 1 again

60 all_to_all [{"x"}: 2->3, {"y"}: 0->1] %arg0 out_sharding=<@xy, [{}, {"y"}, {}, {"x"}]>
on @xy, [{"y"}, {}, {"x"}, {}]
! moves must be in the order of their source dims, got 0 after 2

60 all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@xy, [{"y"}, {"x"}]>
on @xy, [{"x", "y"}, {}]
! {"x"} must be the last axes of dim 0 of the operand, got {"x", "y"}

60 all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@xy, [{}, {"x", "y"}]>
on @xy, [{"x"}, {"y"}]
! dim 1 of the result must be sharded along {"y", "x"}, got {"x", "y"}

60 all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@xy, [{}, {"x"}, {"y"}]>
on @xy, [{"x"}, {}, {}]
! dim 2 of the result must be sharded along {}, got {"y"}

60 all_to_all [{"x"}: 0->1, {"y"}: 2->3] %arg0 out_sharding=<@xy, [{}, {"x"}, {}, {"z", "y"}]>
on @xy, [{"x"}, {}, {"y"}, {"z"}]

61 collective_permute %arg0 out_sharding=<@xy, [{"z"}, {}]>
on @xy, [{"x"}, {}]
! dim 0 must be in as many shards before and after, got 2 and 4

61 collective_permute %arg0 out_sharding=<@xy, [{}, {"x"}]>
on @xy, [{"x"}, {}]
! dim 0 must be in as many shards before and after, got 2 and 1

61 collective_permute %arg0 out_sharding=<@xy, [{"z"}, {}]>
on @xy, [{"x", "y"}, {}]

62 all_reduce {"y"} %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{"x"}, {}]
! the dims of operand and result must be sharded alike, got {"x"} and {} in dim 0

62 all_reduce {"y", "x"} %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{}, {}]
! reduction axes must be in the order of mesh @xy, got {"y", "x"}; write {"x", "y"}

62 all_reduce {"q"} %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{}, {}]
! an axis must be of mesh @xy, got "q"

62 all_reduce {"y", "y"} %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{}, {}]
! an axis must be used once, got "y" again in reduction

62 all_reduce {"x"} %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{"x"}, {}]
! an axis of the reduction must neither shard the operand nor be replicated there, got "x" with [{"x"}, {}]

62 all_reduce {"x"} %arg0 out_sharding=<@xy, [{}, {}], replicated={"x"}>
on @xy, [{}, {}], replicated={"x"}
! an axis of the reduction must neither shard the operand nor be replicated there

62 all_reduce {"x"} %arg0 out_sharding=<@xy, [{}, {}], unreduced={"x", "y"}>
on @xy, [{}, {}], unreduced={"x", "y"}
! an axis of the reduction must not stay unreduced, got "x" with [{}, {}], unreduced={"x", "y"}

62 all_reduce {"x"} %arg0 out_sharding=<@xy, [{}, {}], unreduced={"y"}>
on @xy, [{}, {}], unreduced=max{"x", "y"}
! what stays unreduced must be reduced as the operand is, got max and sum

62 all_reduce {"x"} %arg0 out_sharding=<@xy, [{}, {}], unreduced={"y"}>
on @xy, [{}, {}], unreduced={"x", "y"}

63 reduce_scatter [{"x"}, {}] %arg0 out_sharding=<@xy, [{"y"}, {}]>
on @xy, [{"y"}, {}], unreduced={"x"}
! dim 0 of the result must be sharded along {"y", "x"}, got {"y"}

63 reduce_scatter [{"x"}, {}] %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{}, {}], replicated={"x"}
! an axis of the reduction must neither shard the operand nor be replicated there
~ it checks this of an all_reduce only

63 reduce_scatter [{"x"}, {}] %arg0 out_sharding=<@xy, [{"y", "x"}, {}], unreduced={"z"}>
on @xy, [{"y"}, {}], unreduced={"x", "z"}

64 replicated_to_unreduced {} %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{}, {}]
! there must be an axis, got none

64 replicated_to_unreduced {"y", "x"} %arg0 out_sharding=<@xy, [{}, {}], unreduced={"x", "y"}>
on @xy, [{}, {}]
! unreduced axes must be in the order of mesh @xy, got {"y", "x"}

64 replicated_to_unreduced {"x"} %arg0 out_sharding=<@xy, [{}, {"y"}], unreduced={"x"}>
on @xy, [{}, {}]
! the dims of operand and result must be sharded alike, got {} and {"y"} in dim 1

64 replicated_to_unreduced {"x"} %arg0 out_sharding=<@xy, [{"x"}, {}], unreduced={"y"}>
on @xy, [{"x"}, {}]
! an axis must hold copies of the operand before, got "x"

64 replicated_to_unreduced {"x"} %arg0 out_sharding=<@xy, [{}, {}], unreduced={"y"}>
on @xy, [{}, {}]
! the result must be unreduced over {"x"}, got {"y"}

64 replicated_to_unreduced {"x"} %arg0 out_sharding=<@xy, [{}, {}], unreduced=max{"x"}>
on @xy, [{}, {}]
! what is unreduced must be a sum, got max

64 replicated_to_unreduced {"x"} %arg0 out_sharding=<@xy, [{"y"}, {}], unreduced={"x", "z"}>
on @xy, [{"y"}, {}], unreduced={"z"}

65 sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@xy, [{"y"}, {}], unreduced={"x"}>
on @xy, [{"x", "y"}, {}]
! {"x"} must be the last axes of dim 0 of the operand, got {"x", "y"}

65 sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@xy, [{}, {}]>
on @xy, [{"x"}, {}]
! the result must be unreduced over {"x"}, got {}

65 sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@xy, [{"x"}, {}]>
on @xy, [{"x"}, {}]
! dim 0 of the result must be sharded along {}, got {"x"}

65 sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@xy, [{}, {}], unreduced=max{"x"}>
on @xy, [{"x"}, {}]
! what is unreduced must be a sum, got max

65 sharded_to_unreduced [{"y"}, {}] %arg0 out_sharding=<@xy, [{"x"}, {}], unreduced={"y", "z"}>
on @xy, [{"x", "y"}, {}], unreduced={"z"}
""",
)
