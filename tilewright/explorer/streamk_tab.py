"""The tab of Stream-K."""

from __future__ import annotations

from tilewright.explorer.answer import Answer, Field, FieldError, Form, Tab
from tilewright.gemm.operators.compare import Decompositions, entry_of
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.lang.device.smem import get_smem_capacity_in_bytes
from tilewright.viz import gantt, streamk_plan_figure

MOST_TILES, MOST_SMS = 4096, 256
KERNEL, SMEM = "tensorop_f16", get_smem_capacity_in_bytes("sm_90")
NUMBERS = (
    ("output tiles", "output_tiles"),
    ("k-iterations of a tile", "iters_per_tile"),
    ("tiles by Stream-K", "sk_tiles"),
    ("blocks that share them", "sk_blocks"),
    ("waves of these blocks", "sk_waves"),
    ("regions", "sk_regions"),
    ("k-iterations of a block", "sk_iters_per_normal_block"),
    ("blocks with one more", "big_blocks"),
    ("data-parallel blocks", "dp_blocks"),
    ("reduction blocks", "reduction_blocks"),
    ("blocks of the grid", "num_blocks"),
    ("bytes of flags", "barrier_workspace_size"),
)


def stream_k(form: Form) -> Answer:
    """One product in each decomposition, when each block runs, and the numbers of the plan."""
    problem = form.number("m"), form.number("n"), form.number("k")
    sms, occupancy, split = form.number("sms", 1, MOST_SMS), form.number("occupancy", 1, 8), form.number("split", 2, 64)
    m, n, k = problem
    try:
        bM, bN, bK = map(int, form["tile"].split("x"))
    except ValueError:
        raise FieldError("tile", f"{form['tile']!r}: a tile is written MxNxK, such as 128x128x32") from None
    with form.at("tile"):
        if min(bM, bN, bK) < 1:
            raise FieldError("tile", f"{form['tile']}: extents are positive")
        if (tiles := -(-m // bM) * -(-n // bN)) > MOST_TILES:
            raise FieldError("tile", f"a chart shows {MOST_TILES} tiles at the most: take larger tiles")
        entry = entry_of(KERNEL, (bM, bN, bK))
        compared = Decompositions(problem, entry, sms=sms, smem=SMEM, split=split, occupancy=occupancy)
    shown = [(v.name, v) for v in compared.variants if v.name.startswith("Basic") or "default" in v.name]
    charts = [(name, compared.schedule(variant)) for name, variant in shown]
    plan = next(v.how for _, v in shown if isinstance(v.how, StreamK))
    values = {**{name: getattr(plan, name, None) for _, name in NUMBERS}, "output_tiles": tiles}
    values["big_blocks"] = plan.sk_regions * plan.sk_big_blocks_per_region
    numbers = "\n".join(f"{title:<26}{values[name]}" for title, name in NUMBERS)
    times = "\n".join(
        f"{name}: {c.time:.4g} us (modelled), quantisation efficiency {c.quantisation_efficiency:.1%}"
        for name, c in charts
    )
    title = f"{m} x {n} x {k} in tiles of {form['tile']} on {sms} multiprocessors"
    why = streamk_plan_figure(tiles, plan.iters_per_tile, sms, occupancy)
    return Answer(
        [("when each block runs", gantt(charts, title)), ("why this plan", why)],
        [("decompositions", times), ("the plan of Stream-K", numbers)],
        python=f"tilewright streamk {m} {n} {k} --sms {sms} --occupancy {occupancy} --tile {form['tile']}",
    )


STREAMK = Tab(
    "streamk",
    "Stream-K",
    "Data-parallel, split-K and Stream-K on one product: when each block runs, and why.",
    (
        Field("m", "M", "384"),
        Field("n", "N", "384"),
        Field("k", "K", "2048"),
        Field("sms", "Multiprocessors", "8"),
        Field("occupancy", "Blocks of each", "1"),
        Field("tile", "Tile", "128x128x32"),
        Field("split", "Split of split-K", "2"),
    ),
    stream_k,
)
