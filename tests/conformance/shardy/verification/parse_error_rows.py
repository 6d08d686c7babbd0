# SPDX-License-Identifier: Apache-2.0
"""Texts of shardings and rules that are none: category, the text with § where we see it, what our message says.

Categories are those of Shardy's parser: 1 priorities, 2 brackets and commas, 3 axes, 4 what follows the dims, 5 lists
given twice, 6 the mesh, 7 sharding rules.
"""

from __future__ import annotations

SHARDINGS = """
1 @xy, [{"x"}§p, {}]
! a priority must be 'p' and a number, such as p1, got "p"

1 @xy, [{"x"}§p01, {}]
! a priority must have no leading zero, got "p01"

1 @xy, [{"x"}p§99999999999999999999, {}]
! a priority must fit in 64 bits, got 99999999999999999999

1 @xy, [{"x"}§q1, {}]
! a priority must be 'p' and a number, such as p1, got "q1"

1 @xy, [{"x"}§P1, {}]
! a priority must be 'p' and a number, such as p1, got "P1"

1 @xy, [{"x"}§p 1, {}]
! a priority must be 'p' and a number, such as p1, got "p"

2 @xy §[{"x"}, {}]
! expected ',' after the mesh of a sharding, got "["

2 @xy§
! expected ',' after the mesh of a sharding, got ">"

2 @xy, §{"x"}, {}
! expected '[' before the dims of a sharding, got "{"

2 @xy, [§"x", {}]
! expected '{' before the axes of a dim, got '"'

2 @xy, [{"x"} §{}]
! expected ',' or ']' after a dim of a sharding, got "{"

2 @xy, [{"x" §?}, {}]
! expected ',' or '}' after an axis of a dim, got "?"

2 @xy, [{?§, "x"}, {}]
! '?' must be the last in a dim, before '}', got ","

2 @xy, [{"x"}, {},§]
! expected '{' before the axes of a dim, got "]"

2 @xy, [{"x"}, {}], replicated§{"y"}
! expected '=' after 'replicated', got "{"

2 @xy, [{"x"}, {}], replicated=§"y"
! expected '{' before a list of axes, got '"'

2 @xy, [{"x"}, {}§
! expected ',' or ']' after a dim of a sharding, got ">"

2 @xy, [{"x", §{}]
! an axis must be a string, such as "x" or "x":(1)2, got "{"

2 @xy, [{"x"}, {}] §replicated={"y"}
! expected '>' after a sharding, got "replicated"

2 mesh§["x"=2], [{}, {}]
! expected '<' before a mesh, got "["

2 mesh<["x"§:2]>, [{}, {}]
! expected '=' after the name of an axis, got ":"

2 mesh<["x"=2], §ids=[0, 1]>, [{}, {}]
! expected 'device_ids' after the axes of a mesh, got "ids"

2 mesh<["x"=2§>, [{}, {}]
! expected ',' or ']' after an axis of a mesh, got ">"

2 mesh<["a"=2], device_ids=[§]>, [{}, {}]
! a list of device ids must have one, got "]"; leave the list out

3 @xy, [{§x}, {}]
! an axis must be a string, such as "x" or "x":(1)2, got "x"

3 @xy, [{"x",§}, {}]
! an axis must be a string, such as "x" or "x":(1)2, got "}"

3 @xy, [{"x":§1)2}, {}]
! expected '(' before the pre-size of a sub-axis, got "1"

3 @xy, [{"x":(1§}, {}]
! expected ')' after the pre-size of a sub-axis, got "}"

3 @xy, [{"x":(1)§}, {}]
! expected a number as the size of a sub-axis, got "}"

3 @xy, [{"x":(§a)2}, {}]
! expected a number as the pre-size of a sub-axis, got "a"

3 @xy, [{}, {}], replicated={§y}
! an axis must be a string, such as "x" or "x":(1)2, got "y"

3 @xy, [{}, {}], replicated=§{}
! a list of axes must have one, got {}; leave the list out

3 @xy, [{}, {}], unreduced=§{}
! a list of axes must have one, got {}; leave the list out

4 @xy, [{"x"}, {}],§
! expected 'replicated' or 'unreduced' after ',', got ">"

4 @xy, [{"x"}, {}], §reserved={"y"}
! expected 'replicated' or 'unreduced' after ',', got "reserved"

4 @xy, [{"x"}, {}], §{"y"}
! expected 'replicated' or 'unreduced' after ',', got "{"

4 @xy, [{"x"}, {}], unreduced=§avg{"y"}
! a reducer must be sum, prod, max, min, and or or, got "avg"

5 @xy, [{"x"}, {}], replicated={"y"}, §replicated={"z"}
! replicated must be given once; write all its axes in one list

5 @xy, [{"x"}, {}], unreduced={"y"}, §unreduced={"z"}
! unreduced must be given once; write all its axes in one list

5 @xy, [{}, {}], unreduced={"y"}, replicated={"z"}, §unreduced={"x"}
! unreduced must be given once; write all its axes in one list

6 §xy, [{"x"}, {}]
! a sharding must begin with a mesh: '@name' or 'mesh<[...]>', got "xy"

6 §"xy", [{"x"}, {}]
! a sharding must begin with a mesh: '@name' or 'mesh<[...]>', got '"'

6 §[{"x"}, {}]
! a sharding must begin with a mesh: '@name' or 'mesh<[...]>', got "["

6 @§, [{}, {}]
! expected a name after '@', got ","
"""

RULES = """
7 ([§I, k], [k, j])->([i, j]) …
! a factor must be a letter from i to z, or z_1, z_2, …, got "I"

7 ([i§a, k], [k, j])->([i, j]) …
! a factor must be a letter from i to z, or z_1, z_2, …, got "a"

7 ([i, z_§], [k, j])->([i, j]) …
! a factor z_ must have a number, such as z_1, got "z_"

7 ([i, z_§0], [k, j])->([i, j]) …
! the number of a factor z_ must begin with 1 to 9, got 0

7 ([i, z_§01], [k, j])->([i, j]) …
! the number of a factor z_ must begin with 1 to 9, got 01

7 ([i, z_§99999999999999999999], [k, j])->([i, j]) …
! the number of a factor z_ must fit in 64 bits, got 99999999999999999999

7 ([i, z_§9223372036854775807], [k, j])->([i, j]) …
! the number of a factor z_ must fit in 64 bits, got 9223372036854775807

7 ([i, k], [k, j])->([i, j]) {i=8, §k=4, j=16}
! sizes must be given in the order of factors, next that of j, got k

7 ([i, k], [k, j])->([i, j]) {i=8, §i=16, k=4}
! sizes must be given in the order of factors, next that of j, got i

7 ([i, k], [k, j])->([i, j]) {§ij=8, k=4}
! a size must be of one factor, got ij; write a size for each

7 ([i, k], [k, j])->([i, j]) {i=8, j=16, k=§-4}
! the size of a factor must be at least 0, got -4

7 ([i, k], [k, j])->([i, j]) {i=8, j=16, k=§9999999999999999999999}
! the size of a factor must fit in 64 bits, got 9999999999999999999999

7 ([i, k], [k, j])->([i, j]) {i=8, j=16, k§}
! expected '=' after a factor, got "}"

7 ([i, k], [k, j])->([i, j]) {§8, j=16}
! sizes must be given in the order of factors, next that of i, got "8"

7 ([i, k], [k, j])->([i, j]) …, §foo
! expected 'custom' after ',' in a sharding rule, got "foo"

7 ([i, k], [k, j])->([i, j]) …,§
! expected 'custom' after ',' in a sharding rule, got ">"

7 ([i, k], [k, j])->([i, j]) … §custom
! expected '>' after a sharding rule, got "custom"

7 ([i, k], [k, j])->([i, j]) … §reduktion={k}
! expected '>' after a sharding rule, got "reduktion"

7 ([i, k], [k, j])->([i, j]) … permutation={j} §reduction={k}
! expected '>' after a sharding rule, got "reduction"

7 ([i, k], [k, j])->([i, j]) … reduction={k} §reduction={k}
! expected '>' after a sharding rule, got "reduction"

7 ([i, k], [k, j])->([i, j]) … reduction §{k}
! expected '=' after 'reduction', got "{"

7 ([i, k], [k, j])->([i, j]) … reduction={k,§}
! expected a factor, got "}"

7 ([i, k], [k, j])->([i, j]) … reduction={§4}
! expected a factor, got "4"

7 ([i §k], [k, j])->([i, j]) …
! expected ',' or ']' after the factors of a dim, got "k"

7 ([i, §1], [k, j])->([i, j]) …
! expected ',' or ']' after the factors of a dim, got "1"

7 ([i, k], [k, j])§([i, j]) …
! expected '->' between operands and results of a sharding rule, got "("

7 ([i, k], [k, j])->§[i, j] …
! expected '(' before the tensors of a sharding rule, got "["

7 §[i, k], [k, j]->([i, j]) …
! expected '(' before the tensors of a sharding rule, got "["

7 ([i, k] §[k, j])->([i, j]) …
! expected ',' or ')' after a tensor of a sharding rule, got "["

7 (§i, k)->([i, j]) …
! expected '[' before the factors of a tensor, got "i"
"""
