"""Inline PTX: the instruction that carries its text, what its text says, and its actions in the simulator.

``text.py`` reads the statements, ``actions.py`` has an action for each opcode (``@known("setp")``), on the
``Registers`` of ``registers.py``; ``inline.py`` is the instruction. Start with ``actions.py``.
"""
