"""Pipelines to and from tcgen05 and of cluster launch control, which are not here yet."""

from tilewright import sm100

__getattr__, __all__ = sm100.names(
    __name__, "PipelineAsyncUmma PipelineClcFetchAsync PipelineTmaUmma PipelineUmmaAsync", public="pipeline"
)
