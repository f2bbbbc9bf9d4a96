"""Numbers of the language: ``Int32``, ``Float16``, ... hold a Python number or a value of the IR.

- :mod:`numeric`: the classes, one for each data type; :mod:`numeric_base`: what they share; :mod:`wide`: 128 bits
- :mod:`operators`: ``a + b`` as a folded number or an op; :mod:`promote`: the type in which it is computed
- :mod:`facts`: sign, divisor and upper bound of a run-time integer; they simplify comparisons and divisions, and
  prove that a result does not wrap; :mod:`factors`: products that are known to be multiples
- :mod:`dtypes`: the class for a name, or for a NumPy or PyTorch dtype; :mod:`fast_divmod`: division by multiplication

Start at :mod:`operators`.
"""
