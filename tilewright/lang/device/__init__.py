"""The functions of ``cute.arch``: what a thread does in a kernel besides arithmetic and tensors.

- :mod:`threads`: indices and sizes of grid, block and cluster; :mod:`smem`: shared memory and its allocator
- :mod:`barriers`, :mod:`mbarriers`, :mod:`clusters`: synchronisation of a block, of asynchronous copies, of a cluster
- :mod:`warps`: votes, shuffles, reductions; :mod:`atomic`: atomics and flags with their memory orders; :mod:`bulk`:
  bulk copies
- :mod:`single`, :mod:`integers`, :mod:`packed`, :mod:`registers`, :mod:`inline_ptx`: single instructions, those on
  bits of integers, pairs of floats, the number of registers, PTX text; :mod:`special_registers`: masks of lanes, clocks

Each function checks its arguments and emits one ``call`` op with an instruction of ``atoms`` (:mod:`calls`).
"""
