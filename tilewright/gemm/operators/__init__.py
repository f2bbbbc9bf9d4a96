"""Products of arrays as frameworks have them: matmul, its PyTorch operator, lists of products."""
