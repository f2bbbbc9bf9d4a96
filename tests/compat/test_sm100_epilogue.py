"""What an epilogue of sm_100 loads and stores with: golden lines, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import golden_blackwell_epilogue  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tilewright.atoms.tensor_memory_copy import tmem_copy_layouts
from tilewright.errors import ConstraintError
from tilewright.utils.epilogue_copies import MatrixCopy, TmemLoad, matrix_store, tmem_load

LINES = list(read(DATA / "blackwell_epilogue.jsonl"))
COUNTS = {"sm100_epilogue": 45, "sm100_tmem_load_op": 40}


@pytest.mark.parametrize("op", COUNTS)
def test_every_line(op: str) -> None:
    problems = [f"{line['args']}: {problem}" for line in LINES if line["op"] == op and (problem := check(line))]
    assert not problems, "\n".join(problems)


def test_golden_sm100_epilogue_covers_all_lines() -> None:
    assert Counter(line["op"] for line in LINES) == COUNTS


@pytest.mark.parametrize("m_major", [False, True])
@pytest.mark.parametrize("columns", [24, 32, 96, 256])
def test_a_load_is_a_whole_part_of_the_columns(columns: int, m_major: bool) -> None:
    for lanes in (16, 32):
        load = tmem_load(lanes, columns, 32, 32, m_major)
        assert columns % tmem_copy_layouts(load.shape, load.repeat).columns == 0
        assert tmem_copy_layouts(load.shape, load.repeat).register_count <= 128


def test_one_repetition_has_fewer_matrices() -> None:
    assert matrix_store(TmemLoad("16x256b", 1), 32, 16, True) == MatrixCopy(2, 16, True)
    assert matrix_store(TmemLoad("16x256b", 2), 32, 8, True) == MatrixCopy(2, 8, True)
    assert matrix_store(TmemLoad("32x32b", 8), 32, 16, True) is None


@pytest.mark.parametrize(
    ("lanes", "columns", "acc", "d", "why"),
    [
        (64, 32, 32, 16, "no load of 64 lanes"),
        (32, 32, 16, 32, "of accumulators of 16 bits for results of 32"),
        (16, 32, 32, 4, "not for results of 4 and 6 bits"),
        (16, 3, 32, 16, "3 columns of 32 bits are not a whole number of 16x256b"),
    ],
)
def test_refusals(lanes: int, columns: int, acc: int, d: int, why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        tmem_load(lanes, columns, acc, d, False)
