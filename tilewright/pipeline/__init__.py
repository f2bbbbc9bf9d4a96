"""``cutlass.pipeline``: rings of shared-memory stages between threads that produce and threads that consume."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.pipeline.agents": "Agent CooperativeGroup MbarrierLayout PipelineOp PipelineUserType",
        "tilewright.pipeline.named_barrier": (
            "NamedBarrier arrive arrive_and_wait arrive_unaligned sync wait wait_unaligned"
        ),
        "tilewright.pipeline.state": "PipelineState make_pipeline_state",
        "tilewright.pipeline.sync_object": "SyncObject",
        "tilewright.pipeline.mbarrier_array": "MbarrierArray",
        "tilewright.pipeline.threads": "PipelineAsync PipelineCpAsync",
        "tilewright.pipeline.tma": "PipelineTmaAsync PipelineTmaMultiConsumersAsync",
        "tilewright.pipeline.tma_store": "PipelineTmaStore TmaStoreFence",
        "tilewright.pipeline.order": "PipelineOrder",
        "tilewright.pipeline.initialise": "agent_sync pipeline_init_arrive pipeline_init_wait",
        "tilewright.pipeline.sm100_only": "PipelineAsyncUmma PipelineClcFetchAsync PipelineTmaUmma PipelineUmmaAsync",
        "tilewright.pipeline.participants": "PipelineConsumer PipelineProducer",
    },
)
