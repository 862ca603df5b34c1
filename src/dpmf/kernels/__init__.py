"""Hot loops as Numba functions on flat arrays, each beside the NumPy function that says what it computes.

Kernels release the GIL and start no threads of their own; `dpmf.engine` runs them. Ratings come in compressed rows,
`dpmf.kernels.csr`, of which a call works on rows start..stop-1. Arguments that a kernel writes to are marked `# out`. A
function called `x_reference` is the slow, readable equivalent of the kernel `x`, for one row or for all.
"""
