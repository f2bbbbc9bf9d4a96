"""Some of the sequences of :mod:`call_sequences`; that draws more from the command line."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.gemm.call_sequences import OPERATORS, verdicts

pytestmark = pytest.mark.unchecked


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_kept_between_calls_has_all_properties_in_its_key(operator: str) -> None:
    counts, wrong = verdicts(1, operator, 4)
    assert not wrong, "\n".join(wrong)
    assert counts[f"{operator} right"] >= 2
