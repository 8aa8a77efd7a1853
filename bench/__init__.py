"""The benchmark: the function as built against what a good engineer would otherwise write. None of it is deployed."""
