"""``cutlass.pipeline``: rings of shared-memory stages between threads that produce and threads that consume."""

from tilewright.pipeline.agents import (
    Agent as Agent, CooperativeGroup as CooperativeGroup, MbarrierLayout as MbarrierLayout,
    PipelineOp as PipelineOp, PipelineUserType as PipelineUserType,
)
from tilewright.pipeline.clc import PipelineClcFetchAsync as PipelineClcFetchAsync
from tilewright.pipeline.initialise import (
    agent_sync as agent_sync, pipeline_init_arrive as pipeline_init_arrive,
    pipeline_init_wait as pipeline_init_wait,
)
from tilewright.pipeline.mbarrier_array import (
    MbarrierArray as MbarrierArray, alloc_reserved_mbarrier as alloc_reserved_mbarrier,
)
from tilewright.pipeline.named_barrier import (
    NamedBarrier as NamedBarrier, arrive as arrive, arrive_and_wait as arrive_and_wait,
    arrive_unaligned as arrive_unaligned, sync as sync, wait as wait, wait_unaligned as wait_unaligned,
)
from tilewright.pipeline.order import PipelineOrder as PipelineOrder
from tilewright.pipeline.participants import PipelineConsumer as PipelineConsumer, PipelineProducer as PipelineProducer
from tilewright.pipeline.state import PipelineState as PipelineState, make_pipeline_state as make_pipeline_state
from tilewright.pipeline.sync_object import SyncObject as SyncObject
from tilewright.pipeline.threads import PipelineAsync as PipelineAsync, PipelineCpAsync as PipelineCpAsync
from tilewright.pipeline.tma import PipelineTmaAsync as PipelineTmaAsync
from tilewright.pipeline.umma import (
    PipelineAsyncUmma as PipelineAsyncUmma, PipelineTmaMultiConsumersAsync as PipelineTmaMultiConsumersAsync,
    PipelineTmaUmma as PipelineTmaUmma, PipelineUmmaAsync as PipelineUmmaAsync,
)
from tilewright.pipeline.tma_store import PipelineTmaStore as PipelineTmaStore, TmaStoreFence as TmaStoreFence
