"""The intermediate representation: a kernel between staging and a machine.

- :mod:`types`: scalars (a row for each data type, with what every other interface calls it), vectors, fragments,
  pointers
- :mod:`core`: ``Value``, ``Op``, ``Block``, ``Function``, and their text; :mod:`ops` is the reference of the operations
- :mod:`arithmetic`: the one table of scalar operations, which folding, host code, the simulator, the CUDA emitter and
  exported C read; :mod:`lanes` and :mod:`casts` are its functions on NumPy arrays
- :mod:`instruction`: the base class of the instructions in ``atoms``, and the interfaces by which the simulator
  (``Lanes``) and the emitter (``Emitter``) call them; :mod:`effects`: what an instruction reads, writes and orders
- :mod:`builder` makes ops, :mod:`fold` simplifies them, ``passes`` change a function, :mod:`verify` checks it
- :mod:`runtime`: what crosses between the language and a machine; :mod:`tensormap`: the descriptors of TMA;
  :mod:`target`: architectures and their limits

Start at :mod:`ops`, then :mod:`arithmetic`.
"""
