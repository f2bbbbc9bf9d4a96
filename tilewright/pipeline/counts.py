"""How many arrivals and bytes the barriers of a TMA pipeline wait for.

A stage is *full* when every producer warp has arrived and all its bytes are there. It is *empty* when every block that
reads what this block's TMA copies bring has released it: the blocks of the same row of the cluster (they share A), of
the same column (they share B), and the own one, which both contain. Each of them arrives once for each of its consumer
warps, or once for each warpgroup whose instructions (wgmma) end together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tilewright.errors import ConstraintError
from tilewright.ir.target import WARPGROUP
from tilewright.lang.device.threads import WARP_SIZE, block_shape
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, is_static, size
from tilewright.pipeline.agents import Agent, CooperativeGroup

MOST_BYTES = (1 << 20) - 1


class Releases(NamedTuple):
    """``arrivals`` make a stage empty; every ``threads`` threads (32 or 128) of a consumer arrive once a block."""

    arrivals: int
    threads: int


def peers(cta_layout_vmnk: Layout | None, mcast_mode_mn: tuple[int, int]) -> int:
    """How many blocks of the cluster read what one block's TMA copies bring, the own one included.

    >>> peers(Layout((1, 2, 4, 1)), (1, 1)), peers(Layout((1, 2, 4, 1)), (1, 0)), peers(None, (1, 1))
    (5, 4, 1)
    """
    if cta_layout_vmnk is None:
        return 1
    _, m, n, _ = (size(cta_layout_vmnk[k]) for k in range(4))
    along_m, along_n = mcast_mode_mn
    return int((n if along_m else 1) + (m if along_n else 1) - 1)


def check_cluster(cta_layout_vmnk: Any, mcast_mode_mn: Any) -> None:
    """Refuse anything but a layout (V, M, N, K) of the blocks of a cluster and a pair of flags."""
    if cta_layout_vmnk is not None and (
        not isinstance(cta_layout_vmnk, Layout) or len(cta_layout_vmnk) != 4 or not is_static(cta_layout_vmnk)
    ):
        raise ConstraintError(
            f"cta_layout_vmnk is {cta_layout_vmnk}; a static layout with the modes (V, M, N, K) of the cluster's "
            "blocks is needed: cute.make_layout((1, *cluster_shape_mnk))"
        )
    if tuple(mcast_mode_mn) not in ((0, 0), (0, 1), (1, 0), (1, 1)):
        raise ConstraintError(f"mcast_mode_mn is {mcast_mode_mn!r}; it is (m, n) of 0 or 1")


def releases(consumers: Any, shared: int) -> Releases:
    """What makes a stage empty; ``shared`` is :func:`peers`.

    ``consumers``: a TiledMma or TiledCopy (its threads consume), or a CooperativeGroup: of ``Warp`` or ``ThreadBlock``,
    the consumers of each block; of ``Thread``, the arrivals themselves, as the CuTe DSL's documentation has it
    (blocks that share times consumer warps of a block), never a number of threads.
    """
    if not isinstance(consumers, CooperativeGroup):
        threads = getattr(consumers, "size", None)
        if not isinstance(threads, int):
            raise ConstraintError(
                f"consumer_group is {consumers!r}; a CooperativeGroup, TiledMma or TiledCopy is needed"
            )
        span = WARPGROUP if _is_warpgroup(consumers) else WARP_SIZE
        return Releases(_whole(threads, span, "consumer threads") * shared, span)
    if consumers.agent is Agent.Warp:
        return Releases(_within(consumers.size) * shared, WARP_SIZE)
    if consumers.agent is Agent.ThreadBlock:
        threads = _block_threads()
        if threads is None or consumers.size != 1:
            raise ConstraintError(
                f"consumer_group is {consumers}; how many warps a block has is not known here: launch it with a block "
                "of Python ints, or give CooperativeGroup(Agent.Warp, n)"
            )
        return Releases(_whole(threads, WARP_SIZE, "threads of the block") * shared, WARP_SIZE)
    if consumers.agent is Agent.Thread:
        return Releases(_explicit(consumers.size, shared), WARP_SIZE)
    raise ConstraintError(f"consumer_group is {consumers}; the consumers of one block are counted, as threads or warps")


def _explicit(count: int, shared: int) -> int:
    """Arrivals as they are given, checked."""
    threads = _block_threads()
    most = None if threads is None else -(-threads // WARP_SIZE) * shared
    if count % shared == 0 and (most is None or count <= most):
        return count
    rule = (
        f"a stage is released by {shared} block{'s' if shared > 1 else ''} (those that share what this block loads), "
        "each once for every consumer warp"
    )
    limit = "" if most is None else f", so at most {most} times with blocks of {threads} threads"
    raise ConstraintError(
        f"consumer_group counts {count} arrivals, but {rule}{limit}; give {shared} x consumer warps, or let the "
        "pipeline count: CooperativeGroup(Agent.Warp, consumer warps of a block), or the TiledMma"
    )


def _within(warps: int) -> int:
    threads = _block_threads()
    if threads is not None and warps * WARP_SIZE > -(-threads // WARP_SIZE) * WARP_SIZE:
        raise ConstraintError(f"consumer_group has {warps} warps, but the block has {threads} threads")
    return warps


def _whole(threads: int, span: int, what: str) -> int:
    if threads % span:
        raise ConstraintError(f"{threads} {what} are not a multiple of {span}")
    return threads // span


def _is_warpgroup(tiled: Any) -> bool:
    thr = getattr(tiled, "thr_layout_vmnk", None)
    return thr is not None and size(thr[0]) == WARPGROUP


def _block_threads() -> int | None:
    shape = block_shape()
    return math.prod(shape) if shape is not None else None


def transaction_bytes(tx_count: int | None, stage_tensors: Sequence[Any] | None, num_stages: int) -> int:
    """The bytes that fill one stage: as given, as the tensors that TMA fills have them, or both, compared.

    ``stage_tensors``: in shared memory, with the stage as their last mode.
    """
    counted = None
    if stage_tensors is not None:
        counted = sum(_stage_bytes(tensor, num_stages) for tensor in stage_tensors)
    if tx_count is None:
        if counted is None:
            raise ConstraintError(
                "PipelineTmaAsync.create needs the bytes that fill a stage: tx_count, or stage_tensors=(sA, sB), the "
                "staged tensors that TMA fills, from which they follow"
            )
        tx_count = counted
    if not isinstance(tx_count, int) or not 0 < tx_count <= MOST_BYTES:
        raise ConstraintError(f"tx_count is {tx_count!r}; an mbarrier counts 1 to {MOST_BYTES} bytes a phase")
    if counted is not None and counted != tx_count:
        sizes = " + ".join(str(_stage_bytes(tensor, num_stages)) for tensor in stage_tensors or ())
        raise ConstraintError(
            f"tx_count is {tx_count}, but one stage of the tensors has {counted} bytes ({sizes}): a phase would "
            f"{'complete before the copies have' if tx_count < counted else 'never complete'}; leave tx_count out"
        )
    return tx_count


def _stage_bytes(tensor: Any, num_stages: int) -> int:
    if not isinstance(tensor, Tensor):
        raise ConstraintError(f"stage_tensors: {tensor!r} is not a tensor")
    layout = tensor.layout
    stages, elements = size(layout[len(layout) - 1]), size(layout)
    if stages != num_stages or not isinstance(elements, int):
        raise ConstraintError(
            f"stage_tensors: the last mode of {layout} is the stage, and has {stages} of them where the pipeline has "
            f"{num_stages}"
        )
    return elements // num_stages * tensor.element_type.width // 8
