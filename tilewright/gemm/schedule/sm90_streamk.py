"""Stream-K on Hopper's persistent grid: ``PersistentTileSchedulerSm90StreamK`` of CUTLASS, number for number.

The blocks of the grid, as many as run at once, are the *units*. The first ``sk_units`` of them share the k tiles of the
first ``sk_tiles`` output tiles evenly; then all take the other tiles, one after another. Units are dealt out to
*groups*, each of which shares tiles of its own: units of a group that work side by side read the same rows of A, or
columns of B, at about the same k. ``splits`` > 1 is split-K instead: each tile has that many units, and there are no
Stream-K tiles.

All numbers are in CTA tiles; clusters of blocks share in step, so what is shared comes in whole clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.errors import ConstraintError
from tilewright.gemm.schedule.shared_units import SharedUnits
from tilewright.gemm.schedule.streamk_blocks import ceil_div, positive, triple
from tilewright.utils.persistent_schedule import PersistentScheduleSm90

MIN_ITERS_PER_SK_UNIT = 8
"""A unit of fewer k tiles is not worth its exchange of sums."""

MAX_SK_GROUPS = 8
DECOMPOSITIONS = ("Heuristic", "DataParallel", "SplitK", "StreamK")
REDUCTIONS = ("Deterministic", "Nondeterministic")


@dataclass(frozen=True)
class StreamKScheduleSm90:
    """One decomposition; :meth:`of` makes it. Field names are those of CUTLASS's parameters.

    Nine tiles of 64 k tiles on seven multiprocessors: seven units of 82 or 83 k tiles.

    >>> schedule = StreamKScheduleSm90.of((384, 384, 4096, 1), (128, 128, 64), sm_count=7, decomposition_mode="StreamK")
    >>> schedule.sk_tiles, schedule.sk_units, schedule.k_tiles_per_sk_unit, schedule.sk_groups
    (9, 7, 82, 1)
    >>> [schedule.units.get_iter_extents(unit) for unit in range(3)]
    [(0, 83), (83, 166), (166, 248)]
    """

    persistent: PersistentScheduleSm90  # the order of tiles, and the clusters
    grid: tuple[int, int, int]  # blocks of a wave, not fewer where there is less work
    tiles_per_output_tile: int  # k tiles
    splits: int
    sk_tiles: int
    sk_units: int
    sk_groups: int
    big_groups: int  # groups with one cluster of tiles more
    big_units: int  # clusters of units with one k tile more, in a group of all of them
    k_tiles_per_sk_unit: int
    reduction_mode: str

    @classmethod
    def of(
        cls,
        problem: tuple[int, int, int, int],
        tile: tuple[int, int, int],
        cluster: tuple[int, int] = (1, 1),
        *,
        sm_count: int,
        max_active_clusters: int = 0,
        max_swizzle: int = 1,
        raster: str = "Heuristic",
        splits: int = 1,
        reduction_mode: str = "Deterministic",
        decomposition_mode: str = "Heuristic",
    ) -> StreamKScheduleSm90:
        """The schedule of an (M, N, K, L) problem in (bM, bN, bK) tiles on a GPU of ``sm_count`` multiprocessors.

        ``decomposition_mode`` Heuristic chooses; ``splits`` > 1 asks it for split-K. Raises ArgumentError for numbers
        that are not positive, and ConstraintError for modes that do not exist.
        """
        for name, value, choices in (
            ("decomposition_mode", decomposition_mode, DECOMPOSITIONS),
            ("reduction_mode", reduction_mode, REDUCTIONS),
        ):
            if value not in choices:
                raise ConstraintError(f"{name} is {value!r}; it is one of {', '.join(choices)}")
        m, n, k, batch = problem
        bM, bN, bK = triple("tile", tile, "(bM, bN, bK)")
        for name, number in (("K", k), ("sm_count", sm_count), ("splits", splits)):
            positive(name, number)
        persistent = PersistentScheduleSm90.create((m, n, batch), (bM, bN), cluster, max_swizzle, raster)
        grid = persistent.grid_shape(sm_count, max_active_clusters, truncate_by_problem_size=False)
        k_tiles = ceil_div(k, bK)
        whole = cls(
            persistent,
            grid,
            k_tiles,
            1,
            sk_tiles=0,
            sk_units=0,
            sk_groups=1,
            big_groups=0,
            big_units=0,
            k_tiles_per_sk_unit=k_tiles,
            reduction_mode=reduction_mode,
        )
        heuristic = decomposition_mode == "Heuristic"
        if decomposition_mode == "SplitK" or (heuristic and splits > 1):
            return whole.split(min(splits, sm_count, k_tiles))
        sk_tiles = 0 if decomposition_mode == "DataParallel" else whole.count_sk_tiles(heuristic)
        sk_units = whole.count_sk_units(sk_tiles)
        if sk_units == 0:
            return whole
        if heuristic and sk_tiles < sk_units and sk_units % sk_tiles == 0:
            return whole.split(sk_units // sk_tiles)
        return whole.share(sk_tiles, sk_units)

    @property
    def cluster_size(self) -> int:
        a, b = self.persistent.cluster_mn
        return a * b

    @property
    def wave(self) -> int:
        """Blocks that run at once."""
        return self.grid[0] * self.grid[1]

    @property
    def output_tiles(self) -> int:
        return self.persistent.blocks_per_problem

    @property
    def units_per_problem(self) -> int:
        """Units of work: those that share, and one for each of the other tiles."""
        return self.output_tiles - self.sk_tiles + self.sk_units

    @property
    def separate_reduction_units(self) -> int:
        """None: upstream has them switched off, and the last unit of a tile adds up its sums."""
        return 0

    @property
    def sk_units_per_group(self) -> int:
        return max(1, self.sk_units // self.sk_groups)

    @property
    def clusters_mnl(self) -> int:
        """Clusters that share, or of tiles where none do."""
        return (self.sk_units or self.output_tiles) // self.cluster_size

    @property
    def units(self) -> SharedUnits:
        """The shares of the clusters that share tiles, for a kernel: clusters of tiles, clusters of units. In split-K
        each tile is a group."""
        size, k_tiles = self.cluster_size, self.tiles_per_output_tile
        if self.splits > 1:
            tiles = self.output_tiles // size
            return SharedUnits(tiles, tiles * self.splits, k_tiles, tiles)
        return SharedUnits(self.sk_tiles // size, self.sk_units // size, k_tiles, self.sk_groups)

    def count_sk_tiles(self, heuristic: bool) -> int:
        """The tiles of the last, partial wave and of the one before it; none where no wave is partial, or K is
        short, or, by the heuristic, where the last wave is at least half full."""
        full, tail = divmod(self.output_tiles, self.wave)
        if tail == 0 or self.tiles_per_output_tile <= MIN_ITERS_PER_SK_UNIT or (heuristic and 2 * tail >= self.wave):
            return 0
        tiles = self.output_tiles - max(full - 1, 0) * self.wave
        return tiles // self.cluster_size * self.cluster_size

    def count_sk_units(self, sk_tiles: int) -> int:
        """A wave of clusters, or fewer where each would have too few k tiles."""
        units = min(self.wave, self.tiles_per_output_tile * sk_tiles // MIN_ITERS_PER_SK_UNIT)
        return units // self.cluster_size * self.cluster_size

    def split(self, splits: int) -> StreamKScheduleSm90:
        """Split-K: units for each tile."""
        each, more = divmod(self.tiles_per_output_tile, splits)
        return replace(self, splits=splits, big_units=more, k_tiles_per_sk_unit=each)

    def share(self, sk_tiles: int, sk_units: int) -> StreamKScheduleSm90:
        """Stream-K, in as many groups as both the clusters of units and those of tiles can be divided into; if there
        is no such number, as the units can."""
        size = self.cluster_size
        tiles, units = sk_tiles // size, sk_units // size
        m, n, _ = self.persistent.clusters_mnl
        numbers = range(min(n if self.persistent.along_n else m, MAX_SK_GROUPS), 1, -1)
        fine = [g for g in numbers if units % g == 0 and self.per_unit(tiles, sk_units, g) >= MIN_ITERS_PER_SK_UNIT]
        groups = next((g for g in fine if tiles % g == 0), fine[0] if fine else 1)
        per_group = self.tiles_per_output_tile * (tiles // groups) * size
        return replace(
            self,
            sk_tiles=sk_tiles,
            sk_units=sk_units,
            sk_groups=groups,
            big_groups=tiles % groups,
            big_units=per_group % sk_units // size,
            k_tiles_per_sk_unit=per_group // (sk_units // groups),
        )

    def per_unit(self, cluster_tiles: int, sk_units: int, groups: int) -> int:
        """k tiles of a unit with this many groups."""
        return cluster_tiles // groups * self.cluster_size * self.tiles_per_output_tile // (sk_units // groups)
