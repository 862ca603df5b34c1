"""The engine: the block grid, its schedule, and the threads that run kernels over it."""
