"""Rows of a matrix that TMA gathers, and pixels of images: they are there when the mbarrier says so."""

from __future__ import annotations

from tests.blackwell.test_rows_by_tma import copies, matrices
from tests.check.pairs import pair
from tests.hopper import test_im2col
from tilewright.cute.runtime import from_dlpack


@pair("race", "prims.cp_async_bulk_tensor_shared_cta_global(", "z[i] = tile[i]")
def gathered_rows_that_have_not_arrived(bug: bool) -> None:
    copies((5, 0, 3, 9), (2, 7, 1, 0), waits=not bug)(*matrices()[1])


@pair(
    "race",
    "prims.cp_async_bulk_tensor_shared_cta_global(tile, load.get_ptr(), how.at, full, how.offsets, mode=how.mode)",
    "z[i] = tile[i]",
)
def pixels_that_have_not_arrived(bug: bool) -> None:
    how = test_im2col.COPIES[3]._replace(waits=not bug)
    x, z = test_im2col.images(how)
    test_im2col.copying(how)(from_dlpack(x, assumed_align=16), from_dlpack(z))
