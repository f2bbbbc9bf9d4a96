"""The Python front: numeric types, pointers, tensors, and the staging of Python into the IR.

Its packages, lowest layer first: ``numbers``, ``staging``, ``tensors``, then ``arguments`` and ``device``, then
``launch`` and ``tools``. Each imports only those of lower layers.
"""
