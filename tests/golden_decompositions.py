"""Handlers of the golden lines about decompositions: CUTLASS's threadblock swizzles and the schedulers of Hopper."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tilewright.gemm.schedule.identity import GemmIdentityThreadblockSwizzle
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.utils.persistent_schedule import PersistentScheduleSm90


@handler("GemmIdentityThreadblockSwizzle")
def _identity(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    made = GemmIdentityThreadblockSwizzle.of(
        tuple(args["problem"]), tuple(args["tile"]), n=args["N"], split_k_slices=args["split_k_slices"]
    )
    places = [(x, y) for y in range(made.grid[1]) for x in range(made.grid[0])]
    return {
        "result": {
            "tiled_shape": list(made.tiled_shape),
            "log_tile": made.log_tile,
            "grid": list(made.grid),
            "tile_offset_yx": [list(made.get_tile_offset(*place)) for place in places],
            "tile_offset_from_shape_yx": [list(made.get_tile_offset_from_shape(*place)) for place in places],
        }
    }


def order(schedule: PersistentScheduleSm90) -> dict[str, Any]:
    """What lines about either scheduler have in common."""
    m, n, _ = schedule.clusters_mnl
    return {
        "log_swizzle_size": schedule.log_swizzle_size,
        "raster_order": "AlongN" if schedule.along_n else "AlongM",
        "div_batch": schedule.tiles_mnl[0] * schedule.tiles_mnl[1],
        "div_cluster_blk_major": n if schedule.along_n else m,
    }


@handler("PersistentTileSchedulerSm90Params")
def _persistent(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    (m, n, _, batch), (bM, bN, _), cluster = args["problem"], args["tile"], tuple(args["cluster"][:2])
    made = PersistentScheduleSm90.create((m, n, batch), (bM, bN), cluster, args["max_swizzle"], args["raster"])
    a, b = cluster
    device = args["sm_count"], args["max_active_clusters"]
    return {
        "result": order(made)
        | {
            "tiled_cta_shape": list(PersistentScheduleSm90.create((m, n, batch), (bM, bN), cluster).tiles_mnl),
            "blocks_per_problem": made.blocks_per_problem,
            "problem_tiles": list(made.clusters_mnl),
            "div_cluster_shape_major": b if made.along_n else a,
            "div_cluster_shape_minor": a if made.along_n else b,
            "grid": list(made.grid_shape(*device)),
            "grid_not_truncated": list(made.grid_shape(*device, truncate_by_problem_size=False)),
        }
    }


@handler("PersistentTileSchedulerSm90StreamKParams")
def _persistent_stream_k(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    options = (
        "sm_count",
        "max_active_clusters",
        "max_swizzle",
        "raster",
        "splits",
        "reduction_mode",
        "decomposition_mode",
    )
    made = StreamKScheduleSm90.of(
        tuple(args["problem"]), tuple(args["tile"]), tuple(args["cluster"][:2]), **{key: args[key] for key in options}
    )
    same = (
        "units_per_problem",
        "tiles_per_output_tile",
        "splits",
        "big_units",
        "big_groups",
        "sk_tiles",
        "sk_units",
        "sk_groups",
        "sk_units_per_group",
        "k_tiles_per_sk_unit",
        "clusters_mnl",
        "separate_reduction_units",
    )
    return {
        "result": order(made.persistent)
        | {key: getattr(made, key) for key in same}
        | {"k_tiles_per_sk_big_unit": made.k_tiles_per_sk_unit + 1, "grid": list(made.grid)}
    }


def stream_k(args: dict[str, Any]) -> StreamK:
    """The decomposition of a golden line. Element sizes change nothing; a width below 1 means 1 upstream."""
    batched = args["mode"] == "kBatched"
    return StreamK.of(
        tuple(args["problem"]),
        tuple(args["tile"]),
        multiprocessors=args["device_sms"],
        occupancy=args["sm_occupancy"],
        available=max(1, args["avail_sms"]),
        split=1 if batched else args["batch_split"],
        batch=args["batch_split"] if batched else None,
        fragments=args["epilogue_acc_fragments"],
    )


@handler("ThreadblockSwizzleStreamK")
def _stream_k(line: dict[str, Any]) -> dict[str, Any]:
    sk = stream_k(line["args"])
    return {"result": members(sk, list(line["result"]))} | ({"detail": maps(sk)} if "detail" in line else {})


def members(sk: StreamK, names: list[str]) -> dict[str, Any]:
    """What a golden line lists as its result; unset divisors read 1."""
    shared = sk.sk_tiles > 0
    derived = {
        "tiled_shape": list(sk.tiled_shape),
        "batch_count": sk.tiled_shape[2],
        "div_sk_iters_per_big_block": sk.sk_iters_per_normal_block + 1 if shared else 1,
        "div_sk_iters_per_region": sk.sk_iters_per_region if shared else 1,
        "div_tiled_cohort_shape_n": sk.cohorts_n,
        "grid": list(sk.grid),
    }
    return {name: derived[name] if name in derived else getattr(sk, name) for name in names}


def maps(sk: StreamK) -> dict[str, list[Any]]:
    """The maps of a golden line's detail."""
    return {
        "iter_extents": [list(sk.get_iter_extents(block)) for block in range(sk.sk_blocks)],
        "tile_offset": [list(sk.get_tile_offset(tile)) for tile in range(numbered_tiles(sk))],
        "first_block_idx": [sk.get_first_block_idx(tile, -1) for tile in range(sk.sk_tiles)],
        "last_block_idx": [sk.get_last_block_idx(tile) for tile in range(sk.sk_tiles)],
        "block_idx": [sk.get_block_idx(x) for x in range(sk.num_blocks)],
    }


def numbered_tiles(sk: StreamK) -> int:
    """Places that tiles are numbered by, also those of cohorts beyond the matrix."""
    return sk.sk_tiles + sk.dp_blocks + (sk.dp_first_wave_tiles - 1) * sk.avail_sms
