"""Which block multiplies what, and in which order: plain host objects that know no GPU, and their device side.

Decompositions: ``decomposition.py`` (data-parallel, persistent, dynamic), ``streamk.py``, ``splitk.py``,
``sm90_streamk.py``. Rasters (``raster.py``) order the tiles. The device side: ``shared.py``, ``semaphore.py``,
``feed.py``, and ``fixup.py``, which passes partial sums on. Start with ``decomposition.py``.
"""
