"""Products of arrays as frameworks have them: ``matmul``, its relatives, their PyTorch and JAX operators.

``matmul.py`` has the plain product and ``Request``, the base of the others: ``scaled.py``, ``sparse.py``, ``mixed.py``,
``offsets.py`` (groups), ``block_scaled.py``. Repeated calls are short: ``launches.py`` makes launches again at other
addresses, ``repeated_call.py`` the calls of all products but ``matmul``, whose first call ``torch_recording.py``
records; ``prepared.py``, ``repeated.py`` and ``rows.py`` those of ``matmul``, also of other numbers of rows.
``torch_*.py`` are the operators of PyTorch. Start with ``matmul.py``.
"""
