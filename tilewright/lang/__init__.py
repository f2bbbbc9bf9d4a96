"""The Python front: numeric types, pointers, tensors, and the staging of Python into the IR.

Its rooms, from the ground up: ``numbers``, ``staging``, ``tensors``, then ``arguments`` and ``device``, then ``launch``
and ``tools``. Each imports only rooms on lower floors.
"""
