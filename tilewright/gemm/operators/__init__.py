"""Products of arrays as frameworks have them: ``matmul``, its relatives, their PyTorch and JAX operators.

``matmul.py`` has the plain product and ``Request``, the base of the others: ``scaled.py``, ``sparse.py``, ``mixed.py``,
``offsets.py`` (groups), ``block_scaled.py``. ``prepared.py``, ``repeated.py`` and ``rows.py`` make repeated calls
short; ``torch_*.py`` are the operators of PyTorch. Start with ``matmul.py``.
"""
