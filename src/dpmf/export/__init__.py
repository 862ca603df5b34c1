"""A release in the forms of other software: arrays, tables, indexes of vectors, a graph that computes lists."""
