"""``cutlass.pipeline``: rings of shared-memory stages between threads that produce and threads that consume.

``PipelineAsync`` (``threads.py``) is the base: ``PipelineTmaAsync`` (``tma.py``) is filled by TMA, those of ``umma.py``
are read or filled by tcgen05, ``PipelineTmaStore`` (``tma_store.py``) is emptied by TMA. A ``PipelineState``
(``state.py``) is the position of one side; ``agents.py`` says who takes part. ``named_barrier.py`` and ``order.py`` are
barriers of groups of warps. Start with ``threads.py``, then ``tma.py``. See docs/pipelines.md.
"""

from tilewright._names import attach

attach(__name__)
