"""Handler of the golden lines about the persistent schedule of Hopper."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tilewright.layout import parse
from tilewright.utils.persistent_schedule import PersistentScheduleSm90


@handler("sm90_schedule")
def _schedule(line: dict[str, Any]) -> dict[str, Any]:
    args, wanted = line["args"], line["result"]
    shapes = [tuple(parse(args[key])) for key in ("problem_mnl", "cta_tile_mn", "cluster")]
    made = PersistentScheduleSm90.create(*shapes, args["max_swizzle"], args["raster"])
    grid = made.grid_shape(args["sm_count"], args["max_active_clusters"])
    blocks = [tuple(map(int, key.split(","))) for key in wanted["work"]]
    return {
        "result": {
            "raster_order": "AlongN" if made.along_n else "AlongM",
            "log_swizzle_size": made.log_swizzle_size,
            "blocks_per_problem": made.blocks_per_problem,
            "problem_tiles_mnl": list(made.clusters_mnl),
            "grid": list(grid),
            "work": {f"{x},{y}": [list(tile) for tile in made.work((x, y), grid)] for x, y in blocks},
        }
    }
