"""Arguments of compiled functions.

- :mod:`signature`: the parameters of a function, bound to the arguments of a call
- :mod:`kinds` and :mod:`protocol`: what an argument is (array, number, group, stream, user's class), the values that
  it becomes, and the part of it that a kernel is specialised for
- :mod:`arrays`: address, shape, strides and dtype of any framework's array; :mod:`dlpack`: ``from_dlpack`` and the
  host's tensors, whose layouts are static or dynamic; :mod:`fake`: tensors without memory, to compile for
- :mod:`streams`: the CUDA streams of several frameworks, as one number

Start at :mod:`signature`.
"""
