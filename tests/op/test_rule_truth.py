# SPDX-License-Identifier: Apache-2.0
"""Every sharding rule against NumPy on slices: what it allows is right, what it forbids fails.

* Splitting along a pass-through factor: a part of the result depends on the same part of the operands alone, and the op
  on that part of the operands gives it.
* Splitting along a reduction factor and combining the partial results by the reducer gives the whole.
* Along a need-replication or permutation factor the naive split gives something else for generic input.

The rule is only read, as text; what it says is judged by the NumPy references of the catalogue.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from shardwise import _core
from tests.op import references as ref
from tests.op.cases import CASES, Application, OpCase
from tests.op.references import Array, Reference, is_float
from tests.support.partitioned import record

SIZES = (6, 4, 7, 1)


@dataclass(frozen=True)
class Rule:
    """`([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}`"""

    operands: list[list[list[str]]]  # per tensor, per dim, its factors, major first
    results: list[list[list[str]]]
    sizes: dict[str, int]
    kinds: dict[str, str]  # factors that are not pass-through

    def kind(self, factor: str) -> str:
        return self.kinds.get(factor, "pass_through")


def parse_rule(text: str) -> Rule:
    match = re.fullmatch(r"\((.*)\)->\((.*?)\)(?: \{(.*?)\})?((?: \w+=\{[^}]*\})*)", text)
    assert match, text
    operands, results, sizes, tail = match.groups()
    kinds = {}
    for label, factors in re.findall(r"(\w+)=\{([^}]*)\}", tail):
        if label != "blocked_propagation":
            kinds |= dict.fromkeys(factors.split(", "), label)
    return Rule(
        _tensors(operands),
        _tensors(results),
        {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", sizes or "")},
        kinds,
    )


def _tensors(text: str) -> list[list[list[str]]]:
    tensors = []
    for dims in re.findall(r"\[(.*?)\]", text):
        tensors.append([re.findall(r"z_\d+|[i-z]", dim) for dim in dims.split(", ")] if dims else [])
    return tensors


def test_rule_text_is_read() -> None:
    rule = parse_rule("([ik, j], [zz_1])->([i]) {i=2, j=16, k=4, z=3, z_1=5} reduction={j, k} permutation={z}")
    assert rule.operands == [[["i", "k"], ["j"]], [["z", "z_1"]]]
    assert rule.results == [[["i"]]]
    assert rule.sizes == {"i": 2, "j": 16, "k": 4, "z": 3, "z_1": 5}
    assert rule.kinds == {"j": "reduction", "k": "reduction", "z": "permutation"}


# ---- slices ---------------------------------------------------------------------------------------------------------


def part_indices(
    rule: Rule, dims: list[list[str]], shape: Sequence[int], factor: str, part: int, parts: int
) -> list[Array]:
    """For each dim, the indices that lie in one of `parts` equal parts of the factor."""
    indices = []
    for factors, size in zip(dims, shape):
        if factor not in factors:
            indices.append(np.arange(size))
            continue
        if len(factors) == 1:  # concatenate and pad: dims whose size is not the factor's
            assert size % parts == 0, "the caller chooses parts that fit"
            indices.append(np.arange(part * size // parts, (part + 1) * size // parts))
            continue
        sizes = [rule.sizes[f] for f in factors]
        assert math.prod(sizes) == size, f"the factors {factors} of a dim must multiply to its size {size}"
        digits = np.unravel_index(np.arange(size), sizes)[factors.index(factor)]
        chunk = rule.sizes[factor] // parts
        indices.append(np.flatnonzero(digits // chunk == part))
    return indices


def take(array: Array, indices: list[Array]) -> Array:
    return array[np.ix_(*indices)] if indices else array


def fits(rule: Rule, shapes: Sequence[Sequence[int]], factor: str, parts: int) -> bool:
    """Whether all dims with the factor can be cut into equal parts."""
    tensors = rule.operands + rule.results
    return all(
        size % parts == 0
        for tensor, shape in zip(tensors, shapes)
        for factors, size in zip(tensor, shape)
        if factor in factors
    )


def splits(rule: Rule, shapes: Sequence[Sequence[int]]) -> Iterator[tuple[str, int]]:
    """(factor, number of parts): in two or three, and down to single elements."""
    for factor, size in rule.sizes.items():
        for parts in sorted({2, 3, size}):
            if parts > 1 and size % parts == 0 and fits(rule, shapes, factor, parts):
                yield factor, parts


def perturbed(
    case: OpCase, application: Application, dtype: str, operands: list[Array], keep: list[list[Array]]
) -> list[Array]:
    """Other values everywhere but in the parts to keep; fixed operands (start indices, bounds) stay."""
    changed = []
    for i, (array, indices) in enumerate(zip(operands, keep)):
        if i in application.fixed or array.ndim == 0:
            changed.append(array)
            continue
        other = case.draw(array.shape, application.operand_dtype(i, dtype), np.random.default_rng(i + 99))
        other = np.where(other == array, ~array if array.dtype == np.bool_ else array + np.ones((), array.dtype), other)
        other = other.astype(array.dtype)
        place = np.ix_(*indices)
        other[place] = array[place]
        changed.append(other)
    return changed


def close(case: OpCase, got: Array, want: Array) -> bool:
    if got.shape != want.shape:
        return False
    if case.kind == "exact" or not is_float(got.dtype):
        return bool(np.array_equal(got, want, equal_nan=is_float(got.dtype)))
    return bool(np.allclose(ref.wide(got), ref.wide(want), rtol=1e-12, atol=1e-12, equal_nan=True))


# ---- judging --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judge:
    """One application of an op, with its rule and inputs."""

    case: OpCase
    application: Application
    dtype: str
    rule: Rule
    operands: list[Array]
    whole: Array

    def part(self, tensor: list[list[str]], array: Array, factor: str, part: int, parts: int) -> list[Array]:
        return part_indices(self.rule, tensor, array.shape, factor, part, parts)

    def operand_parts(self, factor: str, part: int, parts: int) -> list[list[Array]]:
        return [self.part(t, x, factor, part, parts) for t, x in zip(self.rule.operands, self.operands)]

    def local_result(self, factor: str, part: int, parts: int) -> Array:
        """The op on one part of the operands, as a device would run it."""
        inputs = [take(x, indices) for x, indices in zip(self.operands, self.operand_parts(factor, part, parts))]
        if part > 0 and self.rule.kind(factor) == "reduction" and self.application.region:
            init = self.application.init  # counts once
            inputs[init] = np.full(inputs[init].shape, ref.neutral(self.case.combine or "", inputs[0].dtype))
        if self.application.part:
            begin = [int(i[0]) if len(i) else 0 for i in self.operand_parts(factor, part, parts)[0]]
            return np.asarray(self.application.part(begin, self.operands[0].shape)(*inputs))
        indices = self.part(self.rule.results[0], self.whole, factor, part, parts)
        return np.asarray(self.reference([len(i) for i in indices])(*inputs))

    def reference(self, result_shape: Sequence[int]) -> Reference:
        at = self.application.at
        return at(tuple(result_shape)) if at else self.application.reference

    def where(self, factor: str, parts: int) -> str:
        return f"{self.case.id} {self.application.label}: {factor} in {parts} parts"

    def check_pass_through(self, factor: str, parts: int) -> None:
        if not any(factor in dim for dim in self.rule.results[0]):
            # An operand's factor that no result has: splitting it would lose data, so no compute sharding may use it.
            assert not self.independent_of_rest(factor, parts), self.where(factor, parts)
            return
        for part in range(parts):
            mine = self.part(self.rule.results[0], self.whole, factor, part, parts)
            changed = perturbed(
                self.case, self.application, self.dtype, self.operands, self.operand_parts(factor, part, parts)
            )
            again = np.asarray(self.application.reference(*changed))
            assert close(self.case, take(again, mine), take(self.whole, mine)), (
                f"{self.where(factor, parts)}: not local"
            )
            if self.application.has_local and not self.is_private(factor):
                got = self.local_result(factor, part, parts)
                assert close(self.case, got, take(self.whole, mine)), f"{self.where(factor, parts)}: other numbers"

    def is_private(self, factor: str) -> bool:
        """In a result alone, and no op on whole operands can give a part of it (a tail of a reshape)."""
        in_operands = any(factor in dim for tensor in self.rule.operands for dim in tensor)
        return not in_operands and self.case.name == "stablehlo.reshape"

    def independent_of_rest(self, factor: str, parts: int) -> bool:
        changed = perturbed(
            self.case, self.application, self.dtype, self.operands, self.operand_parts(factor, 0, parts)
        )
        return close(self.case, np.asarray(self.application.reference(*changed)), self.whole)

    def check_row_reduction(self, factor: str, parts: int) -> None:
        """Rows of several operands: the parts are combined in order, then along the dims before the factor's."""
        application = self.application
        combine, dims = ref.ROWS[application.rows or ""], application.attrs["dimensions"]
        count = len(self.operands) // 2
        split = next(d for d, factors in enumerate(self.rule.operands[0]) if factor in factors)
        wide = [ref.wide(x) if self.case.kind == "rows" and is_float(x.dtype) else x for x in self.operands]
        total: list[Array] = []
        for part in range(parts):
            inputs = [take(x, i) for x, i in zip(wide, self.operand_parts(factor, part, parts))]
            results = ref.fold_rows(combine, inputs[:count], None, [d for d in dims if d >= split])
            total = combine(total, results) if total else results
        total = ref.fold_rows(combine, total, wide[count:], [d for d in dims if d < split])
        whole = ref.fold_rows(combine, wide[:count], wide[count:], dims)
        assert all(close(self.case, a, b) for a, b in zip(total, whole)), self.where(factor, parts)

    def check_reduction(self, factor: str, parts: int) -> None:
        combine = {
            "add": np.add, "multiply": np.multiply, "maximum": ref.maximum, "minimum": ref.minimum,
            "and": np.bitwise_and, "or": np.bitwise_or,
        }[self.case.combine or ""]  # fmt: skip
        total = self.local_result(factor, 0, parts)
        for part in range(1, parts):
            total = np.asarray(combine(total, self.local_result(factor, part, parts)))
        assert close(self.case, total, self.whole), self.where(factor, parts)

    def naive_split_fails(self, factor: str, parts: int) -> bool:
        """The parts joined along the factor, or where the result does not have it each part, are not the result."""
        locals_ = []
        for part in range(parts):
            try:
                locals_.append(self.local_result(factor, part, parts))
            except (ValueError, IndexError):
                return True  # there is no such op on a part
        dims = [d for d, factors in enumerate(self.rule.results[0]) if factor in factors]
        naive = [np.concatenate(locals_, dims[0])] if dims else locals_
        return not all(close(self.case, result, self.whole) for result in naive)

    def check(self) -> list[bool]:
        """Proves what is allowed; for each forbidden split, whether it fails."""
        forbidden = []
        for factor, parts in splits(self.rule, [x.shape for x in [*self.operands, self.whole]]):
            kind = self.rule.kind(factor)
            if kind == "pass_through":
                self.check_pass_through(factor, parts)
            elif kind == "reduction":
                check = self.check_row_reduction if self.application.rows else self.check_reduction
                check(factor, parts)
            elif self.whole.size:  # an empty result is right anyhow
                forbidden.append(self.naive_split_fails(factor, parts))
        return forbidden


def judge_of(case: OpCase, application: Application, dtype: str) -> Judge | None:
    """None where the op has no rule (a reshape of nothing)."""
    rules = [text for name, text in record(case, application, dtype).sharding_rules() if name == case.name]
    assert len(rules) == 1
    if not rules[0]:
        return None
    operands = case.operands(application, dtype)
    rule = parse_rule(rules[0])
    rule = replace(rule, results=rule.results[application.result :][:1])
    return Judge(case, application, dtype, rule, operands, np.asarray(application.reference(*operands)))


# The text shows Shardy's rule. Its factors of a convolution's windows are no tiles, and no op is partitioned by them:
# our own rule has ranges (test_range_truth), and test_matrix runs what it allows.
OF_SHARDY_ALONE = {"stablehlo.convolution"}
# Propagation follows the data flow of a barrier; the text shows no rule.
OF_FLOW = {"stablehlo.optimization_barrier"}
WITH_RULE = {op.name for op in _core.ir.all_ops() if op.has_rule} - OF_SHARDY_ALONE - OF_FLOW
PROVEN = [case for case in CASES if case.name in WITH_RULE]


@pytest.mark.parametrize("case", PROVEN, ids=[case.id for case in PROVEN])
def test_rule_is_true(case: OpCase) -> None:
    judged = 0
    with np.errstate(all="ignore"):
        for dtype in dict.fromkeys((case.dtypes[0], case.dtypes[-1])):
            by_size = [case.applications(size, dtype) for size in SIZES]
            for variants in zip(*by_size):  # one use of the op at each size
                forbidden: list[bool] = []
                for judge in filter(None, (judge_of(case, variant, dtype) for variant in variants)):
                    check_form(judge)
                    forbidden += judge.check()
                    judged += 1
                if case.name == "stablehlo.concatenate" and len(variants[0].shapes) == 1:
                    continue  # the identity, which the rule forbids like any other, as Shardy's does
                # A slice with stride 2 of 6 rows may be cut in two; of 5 it may not.
                assert any(forbidden) or not forbidden, f"{case.id} {variants[0].label}: forbidden, but it always works"
    assert judged


def check_form(judge: Judge) -> None:
    """Every tensor and dim has factors; those of a dim multiply to its size where the op keeps it."""
    rule = judge.rule
    assert len(rule.operands) == len(judge.operands)
    for tensor, array in zip(rule.operands + rule.results, [*judge.operands, judge.whole]):
        assert len(tensor) == array.ndim
        for factors, size in zip(tensor, array.shape):
            assert factors
            kinds = {rule.kind(f) for f in factors}
            if kinds <= {"pass_through", "reduction"}:
                assert math.prod(rule.sizes[f] for f in factors) == size


def test_pad_and_slice_of_every_dim_forbid_what_moves() -> None:
    """A shifting pad keeps the size of its dim, but not its rows (Shardy reads sizes alone)."""
    case = next(c for c in CASES if c.name == "stablehlo.pad")
    shifting = next(a for a in case.applications(6, "float32") if a.attrs["edge_padding_low"] == (-1, 0))
    rule = parse_rule(record(case, shifting, "float32").sharding_rules()[0][1])
    assert rule.kind(rule.operands[0][0][0]) == "permutation"
