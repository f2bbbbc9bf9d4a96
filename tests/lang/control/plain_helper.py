"""A function that is not staged: kernels call it as it is."""


def is_positive(x):
    if x > 0:
        return True
    return False
