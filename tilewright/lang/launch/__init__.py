"""From a function to a launch: ``jit`` and ``kernel``, staging a whole program, compiling it, and the way of a call.

``jit.py`` and ``kernel.py`` are the decorators, ``stage.py`` stages a host function with its kernels, ``compile.py``
makes an ``Executor`` of it (``executor.py``), whose host code is Python source (``host.py``). ``calls.py`` and
``short_call.py`` read the arguments of a call. Start with ``compile.py``.
"""
