"""The Python front: numeric types, pointers, tensors, and the staging of Python into the IR."""
