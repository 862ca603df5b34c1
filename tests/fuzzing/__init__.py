"""A mutation fuzzer for every parser of files and messages that may come from anywhere."""
