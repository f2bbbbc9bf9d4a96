"""TMA: tensor maps from layouts, the partition of a tile among the copies of a cluster, and how copies are staged."""
