"""Model and Release, fold-in and recommendations."""

from dpmf.model.model import EpochRecord, Model
from dpmf.model.person import Person, Recommendation
from dpmf.model.ranking import Ranking
from dpmf.model.release import Release, Ridge

__all__ = ["EpochRecord", "Model", "Person", "Ranking", "Recommendation", "Release", "Ridge"]
