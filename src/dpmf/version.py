"""The version, where every layer can import it from.

>>> __version__.count(".")
2
"""

__version__ = "0.1.0"
