"""``cutlass.utils``: shared memory, matrix orders, the hardware, tile schedulers.

``sm90`` and ``blackwell_helpers`` choose tiles, layouts and operations as CUTLASS' collective builders do;
``tile_scheduler``, ``grouped_schedule`` and ``persistent_schedule`` assign output tiles to persistent blocks;
``tensormap_manager`` changes tensor maps in a kernel. Start with ``tile_scheduler.py``.
"""

from tilewright._names import attach

attach(__name__)
