"""Pipelines to and from tcgen05 and of cluster launch control, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__, "PipelineAsyncUmma PipelineClcFetchAsync PipelineTmaUmma PipelineUmmaAsync", public="pipeline"
)
