"""A module whose function reads a variable of it."""

factor = 2


def scaled(x):
    return x * factor
