"""The layout algebra of CuTe: layouts, swizzles, and every operation on them, in plain Python.

- :mod:`tuples`, :mod:`ints`: integer trees, whose leaves are ints or run-time integers; :mod:`symbolic`: integers
  with names
- :mod:`layout`: ``Layout``; :mod:`composed`: a layout behind a swizzle; :mod:`swizzle`, :mod:`basis`, :mod:`tile`
- :mod:`coords`, :mod:`modes`, :mod:`slicing`, :mod:`simplify`: indices and coordinates; choosing and changing modes;
  slices; coalesce and filter
- :mod:`text`, :mod:`parsing`: CuTe's notation, written and read
- :mod:`compose`, :mod:`inverse`, :mod:`divides`, :mod:`products`: the algebra itself
- :mod:`analysis`, :mod:`design`: contiguity, bank conflicts, and swizzles without them; :mod:`steps`: operations
  explained

Start at :mod:`layout`, then :mod:`compose`.

>>> from tilewright.layout import *
>>> A = make_layout((8, 16), stride=(16, 1))
>>> A, zipped_divide(A, (4, 8)), composition(A, make_layout(16, stride=2))
((8,16):(16,1), ((4,8),(2,2)):((16,1),(64,8)), (4,4):(32,1))
"""

from tilewright._names import attach

attach(__name__)
