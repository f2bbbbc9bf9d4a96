# Made by `python tools/stubs.py` from tilewright/pipeline/__init__.py; do not edit.
"""``cutlass.pipeline``: rings of shared-memory stages between threads that produce and threads that consume."""

from tilewright.pipeline.agents import Agent as Agent
from tilewright.pipeline.agents import CooperativeGroup as CooperativeGroup
from tilewright.pipeline.agents import MbarrierLayout as MbarrierLayout
from tilewright.pipeline.agents import PipelineOp as PipelineOp
from tilewright.pipeline.agents import PipelineUserType as PipelineUserType
from tilewright.pipeline.initialise import agent_sync as agent_sync
from tilewright.pipeline.initialise import pipeline_init_arrive as pipeline_init_arrive
from tilewright.pipeline.initialise import pipeline_init_wait as pipeline_init_wait
from tilewright.pipeline.mbarrier_array import MbarrierArray as MbarrierArray
from tilewright.pipeline.named_barrier import NamedBarrier as NamedBarrier
from tilewright.pipeline.named_barrier import arrive as arrive
from tilewright.pipeline.named_barrier import arrive_and_wait as arrive_and_wait
from tilewright.pipeline.named_barrier import arrive_unaligned as arrive_unaligned
from tilewright.pipeline.named_barrier import sync as sync
from tilewright.pipeline.named_barrier import wait as wait
from tilewright.pipeline.named_barrier import wait_unaligned as wait_unaligned
from tilewright.pipeline.order import PipelineOrder as PipelineOrder
from tilewright.pipeline.participants import PipelineConsumer as PipelineConsumer
from tilewright.pipeline.participants import PipelineProducer as PipelineProducer
from tilewright.pipeline.sm100_only import PipelineAsyncUmma as PipelineAsyncUmma
from tilewright.pipeline.sm100_only import PipelineClcFetchAsync as PipelineClcFetchAsync
from tilewright.pipeline.sm100_only import PipelineTmaUmma as PipelineTmaUmma
from tilewright.pipeline.sm100_only import PipelineUmmaAsync as PipelineUmmaAsync
from tilewright.pipeline.state import PipelineState as PipelineState
from tilewright.pipeline.state import make_pipeline_state as make_pipeline_state
from tilewright.pipeline.sync_object import SyncObject as SyncObject
from tilewright.pipeline.threads import PipelineAsync as PipelineAsync
from tilewright.pipeline.threads import PipelineCpAsync as PipelineCpAsync
from tilewright.pipeline.tma import PipelineTmaAsync as PipelineTmaAsync
from tilewright.pipeline.tma import PipelineTmaMultiConsumersAsync as PipelineTmaMultiConsumersAsync
from tilewright.pipeline.tma_store import PipelineTmaStore as PipelineTmaStore
from tilewright.pipeline.tma_store import TmaStoreFence as TmaStoreFence
