"""A program's own tile scheduler: plain classes that say of which values they consist, so that loops can carry them."""

from typing import Tuple

import cutlass
import cutlass.cute as cute
from cutlass.cutlass_dsl import Boolean, Int32, dsl_user_op, extract_mlir_values, new_from_mlir_values


class RowsParams:
    """What the host passes to the kernel."""

    def __init__(self, persistent: bool, shape: cute.Shape):
        self.persistent, self.shape = persistent, shape

    def __extract_mlir_values__(self):
        return extract_mlir_values(self.shape)

    def __new_from_mlir_values__(self, values):
        return RowsParams(self.persistent, new_from_mlir_values(self.shape, values))

    def grid(self) -> Tuple[int, int, int]:
        if self.persistent:
            return (cutlass.min(2, cute.size(self.shape)), 1, 1)
        return self.shape


class RowsWork:
    def __init__(self, tile_idx: cute.Coord, is_valid_tile: Boolean):
        self.tile_idx, self.is_valid_tile = tile_idx, Boolean(is_valid_tile)

    def __extract_mlir_values__(self):
        return [*extract_mlir_values(self.tile_idx), *extract_mlir_values(self.is_valid_tile)]

    def __new_from_mlir_values__(self, values):
        tile_idx = new_from_mlir_values(self.tile_idx, values[:-1])
        return RowsWork(tile_idx, new_from_mlir_values(self.is_valid_tile, values[-1:]))


class RowsScheduler:
    def __init__(self, params: RowsParams, current: Int32, first: bool = True):
        self.params, self.current, self.first = params, current, first

    @dsl_user_op
    def get_current_work(self, *, loc=None, ip=None) -> RowsWork:
        layout = cute.make_layout(self.params.shape, loc=loc, ip=ip)
        if self.params.persistent:
            x, y, z = layout.get_hier_coord(self.current)
            valid = self.current < cute.size(layout, loc=loc, ip=ip)
        else:
            x, y, z = cute.arch.block_idx()
            valid = self.first
        return RowsWork((Int32(x), Int32(y), Int32(z)), valid)

    def advance_to_next_work(self):
        if self.params.persistent:
            self.current += cute.arch.grid_dim()[0]
        self.first = False

    def __extract_mlir_values__(self):
        return [*extract_mlir_values(self.params), *extract_mlir_values(self.current)]

    def __new_from_mlir_values__(self, values):
        params = new_from_mlir_values(self.params, values[:-1])
        return RowsScheduler(params, new_from_mlir_values(self.current, values[-1:]), self.first)
