"""Hot loops as Numba functions on flat arrays, each beside the NumPy function that says what it computes.

Kernels release the GIL and start no threads of their own; `dpmf.engine` runs them. Arguments that a kernel writes to
are marked `# out`. A function called `x_reference` is the slow, readable equivalent of the kernel `x`.
"""
