"""Four rows of a matrix that TMA gathers: they are there when the mbarrier says so."""

from __future__ import annotations

from tests.blackwell.test_rows_by_tma import copies, matrices
from tests.check.pairs import pair


@pair("race", "prims.cp_async_bulk_tensor_shared_cta_global(", "z[i] = tile[i]")
def gathered_rows_that_have_not_arrived(bug: bool) -> None:
    copies((5, 0, 3, 9), (2, 7, 1, 0), waits=not bug)(*matrices()[1])
