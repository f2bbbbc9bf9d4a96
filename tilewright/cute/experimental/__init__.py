"""``cute.experimental``: kernels whose copies leave out by themselves what lies outside the arguments.

Tensor arguments of an ``@experimental.kernel`` remember the coordinates of their elements through divisions, tiles and
slices; :func:`copy` makes predicates of them. The rest of ``cute`` is used as in other kernels.
"""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.launch.jit": "jit",
        "tilewright.lang.launch.compile": "compile",
        "tilewright.cute.experimental.kernels": "kernel",
        "tilewright.cute.experimental.copies": "allocate copy partition",
        "tilewright.cute.experimental.sm100_only": (
            "OperationTypeEnum TMAStorePipeline TMAToUMMAPipeline UMMAtoAsyncPipeline dot dot_block_scaled "
            "epilogue_tma_store get_cta_v_map_ab get_cta_v_map_c get_mbarrier mainloop_mma make_t2r_rmem_layout "
            "make_tmem_layout_acc partition_and_copy pipeline_advance_iterator tma_load tma_load_multicast tma_store"
        ),
    },
    ("host_runtime", "iket"),
)
