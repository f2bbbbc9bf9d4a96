"""TMA: tensor maps from layouts, the partition of a tile among the copies of a cluster, and how copies are staged.

``TmaPlan`` (``plan.py``) says which modes of a tensor become which modes of the tensor map; ``atom.py`` has the copy
atoms, ``partition.py`` the parts of each block, ``stage.py`` emits the instructions. Start with ``plan.py``.
"""
