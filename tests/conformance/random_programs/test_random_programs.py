# SPDX-License-Identifier: Apache-2.0
"""A sample of ``python -m tests.conformance.random_programs``, and what the tool relies on."""

from __future__ import annotations

import numpy as np
import pytest

from shardwise import _core
from tests.conformance.random_programs import checking
from tests.conformance.random_programs.__main__ import run_there
from tests.conformance.random_programs.checking import KINDS, check, counted, program_of
from tests.conformance.random_programs.instances import InstanceProgram
from tests.op.dtype_values import ALL_DTYPES

SAMPLE, SEED = 300, 0


def test_random_programs_give_the_results_of_the_unpartitioned_run() -> None:
    checked = [check(SEED, index, several_meshes=index % 2 == 1) for index in range(SAMPLE)]
    wrong = [f"program {index}: {found.wrong}" for index, found in enumerate(checked) if found.wrong]
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:3])
    counts = sum(map(counted, checked), start=type(counted(checked[0]))())
    assert counts["programs"] == SAMPLE
    assert {name for name in counts if name.startswith("kind ")} == {f"kind {kind}" for kind in KINDS}
    assert {name for name in counts if name.startswith("dtype ")} == {f"dtype {dtype}" for dtype in ALL_DTYPES}
    assert all(counts[f"axes {count}"] for count in range(1, 5))
    assert all(counts[f"axis size {size}"] for size in range(1, 10))
    for annotation in (
        "even", "uneven", "empty shards", "sub-axes", "several axes on a dim", "permuted devices", "unreduced",
        "replicated axes", "priority", "constraint", "loop", "branch", "call", "several meshes",
    ):  # fmt: skip
        assert counts[f"annotation {annotation}"] > 5, annotation
    assert sum(name.startswith("op ") for name in counts) > 100


def test_random_programs_on_several_meshes() -> None:
    wrong = [f"program {i}: {found}" for i in range(200) if (found := check(7, i, several_meshes=True).wrong)]
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:3])
    assert check(7, 619, several_meshes=True).wrong == ""  # a carry that is unreduced on the second mesh starts whole


def test_poison_keeps_the_order_of_sums() -> None:
    """A mean over a transposed view with padding: the poisoned copy has the strides of the view."""
    assert check(1, 626).wrong == ""


@pytest.mark.parametrize(
    ("seed", "index", "several_meshes"),
    [
        (39, 1801, False),  # shards that are views of one argument are summed by one product
        (40, 2241, True),
        (39, 2063, False),  # shards that share memory, whose rows are contiguous
    ],
)
def test_poison_keeps_the_products_that_run_merged(seed: int, index: int, several_meshes: bool) -> None:
    assert check(seed, index, several_meshes).wrong == ""


@pytest.mark.parametrize(("seed", "index"), [(40, 3515), (32, 1559), (38, 2430)])
def test_conditions_that_were_gathered_on_another_mesh(seed: int, index: int) -> None:
    assert check(seed, index, several_meshes=True).wrong == ""


@pytest.mark.parametrize("kind", ["numbers", "instances"])
def test_a_bit_that_poison_changes_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The poisoned run is given an argument of another bit; the results of the program are not judged."""
    index = next(
        i for i in range(1000) if KINDS[i % 5] == kind and (found := _moved_argument(i)) is not None and found.size
    )
    scatter = _core.runtime.ShardedArray.scatter

    class Scattering:
        """Shards of a changed array where the padding is poisoned."""

        @staticmethod
        def scatter(x: np.ndarray, held: object, poison: bool = False, **options: object) -> object:
            if poison:
                x = x.copy()
                x.reshape(-1).view(np.uint8)[:1] ^= 1
                options["borrow"] = False
            return scatter(x, held, poison=poison, **options)

    monkeypatch.setattr(checking._core.runtime, "ShardedArray", Scattering)
    assert "poison changes result" in check(SEED, index).wrong


def test_programs_are_drawn_again_alike() -> None:
    for index in range(len(KINDS)):
        (_, first), (_, second) = program_of(5, index), program_of(5, index)
        assert first.record().text() == second.record().text()
        assert all(a.tobytes() == b.tobytes() for a, b in zip(first.arguments, second.arguments))


@pytest.mark.parametrize("kind", ["numbers", "bits", "instances"])
def test_a_wrong_bit_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that is compiled has another argument than the one that the results are compared with."""
    index = next(
        i for i in range(1000) if KINDS[i % 5] == kind and (found := _moved_argument(i)) is not None and found.size
    )
    drawn = program_of(SEED, index)

    def with_another_argument(seed: int, index: int, several_meshes: bool) -> object:
        kind, program = drawn
        if isinstance(program, InstanceProgram):
            program.whole  # noqa: B018 - computed before the argument changes
        changed = program.arguments[-1].copy()
        changed.reshape(-1).view(np.uint8)[0] ^= 1
        program.arguments[-1] = changed
        return kind, program

    monkeypatch.setattr(checking, "program_of", with_another_argument)
    assert "once per shard, poisoned: " in check(SEED, index).wrong


def _moved_argument(index: int) -> np.ndarray | None:
    """The last argument of a program that returns it, moved at most."""
    program = program_of(SEED, index)[1]
    if isinstance(program, InstanceProgram):
        moves = program.instances[-1].op in ("stablehlo.reverse", "stablehlo.transpose", "stablehlo.reshape")
        return program.arguments[-1] if moves else None
    if not program.arguments[-1].size or program.arguments[-1].dtype == np.bool_:
        return None
    return program.arguments[-1] if len(program.arguments) - 1 in program.outputs else None


def test_a_process_that_dies_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program is one of the failures, and the programs after it run in another process."""
    monkeypatch.setattr("tests.conformance.random_programs.__main__.sys.executable", "/bin/false")
    counts, failures = run_there(SEED, 3, 5, False)
    assert [failure["index"] for failure in failures] == [3, 4]
    assert counts["crashes"] == counts["wrong"] == 2


def test_every_program_is_a_module_that_verifies() -> None:
    for index in range(20):
        module = program_of(SEED, index)[1].record()
        module.verify()
        assert _core.ir.parse(module.text()).structurally_equal(module)


@pytest.mark.parametrize(
    ("seed", "index", "several_meshes"),
    [
        # Sub-axes that no single split of an axis has, (1)2 and (3)2 of 6, were given to one dim.
        (31, 853, False), (31, 12791, False), (31, 13738, False), (31, 16275, False), (32, 21221, True),
        # … or to a dim and to the sum that an annotation keeps.
        (31, 16889, False), (32, 1414, True),
        # Totals along one dim, and windows over rows of other shards along another one.
        (31, 24958, False),
        # Shards of the input of a scatter are addends over one axis, and its updates are split over another one, too.
        (42, 7548, True),
    ],
)  # fmt: skip
def test_candidates_that_no_tensor_suggests(seed: int, index: int, several_meshes: bool) -> None:
    assert check(seed, index, several_meshes).wrong == ""
