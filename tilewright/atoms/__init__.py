"""The instructions: one class per family, each with its layouts, constraints, simulator action and CUDA text.

The base class is ``ir.instruction.Instruction``; ``mma.py`` and ``copy.py`` have what all products and all copies
share. Families by file: ``ldmatrix``, ``stmatrix``, ``movmatrix``; ``mma_sync*``; ``wgmma*`` (sm_90); ``tcgen05_*`` and
``tensor_memory_*`` (sm_100); ``cp_async``, ``bulk*``, ``tma*``; ``mbarrier``, ``sync``, ``cluster``; ``atomic``,
``warp``. ``*_state.py`` and ``*_engine.py`` are the simulator's side, ``names.py`` finds atoms by CuTe's names. Start
with ``movmatrix.py``, a short and complete one. See docs/instructions.md.
"""
