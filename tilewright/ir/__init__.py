"""The language that kernels are values of: types, operations, structured regions, verifier and text form."""
