"""The step between the initialisation of a pipeline's mbarriers and their first use."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.device.barriers import sync_threads
from tilewright.lang.device.clusters import cluster_arrive, cluster_arrive_relaxed, cluster_wait
from tilewright.lang.device.mbarriers import mbarrier_init_fence
from tilewright.lang.tensors.tensor import unwrap_tree
from tilewright.layout import Layout, product
from tilewright.pipeline.agents import Agent


def pipeline_init_arrive(
    cluster_shape_mn: Any = None, is_relaxed: bool = False, *, loc: Any = None, ip: Any = None
) -> None:
    """Make the mbarriers that this thread has initialised visible, and in a cluster arrive at its barrier.

    ``cluster_shape_mn``: the cluster's shape (or the layout of its blocks); None, or one block: no cluster.
    ``is_relaxed``: without ordering other memory. Work that needs no other block may be between this and
    :func:`pipeline_init_wait`. For pipelines made with ``defer_sync=True``.

    >>> from tilewright import Int64, pipeline
    >>> @cute.jit
    ... def meet(t):
    ...     bar = cute.arch.alloc_smem(Int64, 1, 8)
    ...     if t == 0:
    ...         cute.arch.mbarrier_init(bar, 64)
    ...     pipeline.pipeline_init_arrive()
    ...     pipeline.pipeline_init_wait()
    ...     cute.arch.mbarrier_arrive(bar)
    ...     cute.arch.mbarrier_wait(bar, 0)
    ...     return 1
    >>> sum(per_thread(meet, 64))
    64
    """
    mbarrier_init_fence()
    if blocks(cluster_shape_mn) > 1:
        cluster_arrive_relaxed() if is_relaxed else cluster_arrive()


def pipeline_init_wait(cluster_shape_mn: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until the mbarriers of all blocks of the cluster are initialised; without a cluster, those of the block.

    >>> from tilewright import pipeline
    >>> @cute.jit
    ... def meet(t):
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     pipe = pipeline.PipelineAsync.create(
    ...         num_stages=1, producer_group=one_warp, consumer_group=one_warp, defer_sync=True
    ...     )
    ...     pipeline.pipeline_init_arrive()
    ...     pipeline.pipeline_init_wait()  # one barrier for all pipelines
    ...     producer, consumer = pipe.make_participants()
    ...     if t < 32:
    ...         producer.acquire_and_advance().commit()
    ...     else:
    ...         consumer.wait_and_advance().release()
    ...     return 1
    >>> sum(per_thread(meet, 64))
    64
    """
    if blocks(cluster_shape_mn) > 1:
        cluster_wait()
    else:
        sync_threads()


def agent_sync(group: Agent, is_relaxed: bool = False, *, loc: Any = None, ip: Any = None) -> None:
    """Wait for all threads of the block (``Agent.ThreadBlock``) or of the cluster (``Agent.ThreadBlockCluster``).

    >>> from tilewright import pipeline
    >>> def swap(t, p):
    ...     cute.arch.store(p + t, t)
    ...     pipeline.agent_sync(pipeline.Agent.ThreadBlock)
    ...     return cute.arch.load(p + (63 - t))
    >>> per_thread(swap, 64, memory=[0] * 64)[0][:3]
    [63, 62, 61]
    """
    if group is Agent.ThreadBlock:
        sync_threads()
    elif group is Agent.ThreadBlockCluster:
        cluster_arrive_relaxed() if is_relaxed else cluster_arrive()
        cluster_wait()
    else:
        raise ConstraintError(f"agent_sync waits for a ThreadBlock or a ThreadBlockCluster, not for a {group}")


def blocks(cluster: Any) -> int:
    """How many blocks a cluster of this shape (or this layout of blocks) has.

    >>> blocks(None), blocks((2, 4)), blocks(Layout((1, 2, 2, 1)))
    (1, 8, 4)
    """
    if cluster is None:
        return 1
    shape = cluster.shape if isinstance(cluster, Layout) else unwrap_tree(cluster)
    count = product(shape)
    if not isinstance(count, int):
        raise ConstraintError(f"the shape of a cluster is known while staging, not {cluster}")
    return count
