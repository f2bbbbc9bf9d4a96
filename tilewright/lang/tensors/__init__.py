"""Tensors: pointers, registers and the tensors over them, the layout algebra and elementwise arithmetic on them.

:class:`~tensor.Tensor` is an iterator (:class:`~pointer.Pointer`, :class:`~registers.Registers` or a coordinate) and a
layout; :class:`~tensor_ssa.TensorSSA` is the value of one, without memory. Start with :mod:`tensor`; :mod:`access`
holds what loads and stores check, :mod:`algebra` the functions on layouts and tensors, :mod:`packed` numbers of less
than a byte.
"""
