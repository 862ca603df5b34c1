"""Model and Release, fold-in and recommendations."""

from dpmf.model.explanation import Explanation
from dpmf.model.model import EpochRecord, Model
from dpmf.model.person import Person
from dpmf.model.ranking import Ranking
from dpmf.model.recommendation import Recommendation, Recommendations
from dpmf.model.recommender import Recommender
from dpmf.model.release import Release, Ridge

__all__ = [
    "EpochRecord",
    "Explanation",
    "Model",
    "Person",
    "Ranking",
    "Recommendation",
    "Recommendations",
    "Recommender",
    "Release",
    "Ridge",
]
