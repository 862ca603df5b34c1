"""Ratings: reading, ids, scale, splits, the catalogue of data sets, synthetic data."""

from dpmf.ratings.items import Items
from dpmf.ratings.table import Ratings, Scale

__all__ = ["Items", "Ratings", "Scale"]
