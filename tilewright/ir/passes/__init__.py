"""Passes over functions, one a file. Each takes a Function and changes it in place."""
