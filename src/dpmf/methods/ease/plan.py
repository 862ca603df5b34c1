"""What a certified run of the ranking method will release.

>>> plan = EasePlan(n_items=100, head=None, n_users=None, budget=Budget(1))
>>> [stage.name for stage in plan.stages()], plan.most_head
(['the count of items', 'pairs of items'], 100)
>>> EasePlan(n_items=100, head=None, n_users=200, budget=Budget(1)).stages()  # too few people for pairs
(Stage(name='the count of items', releases=('item popularity',), round=None, essential=True),)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dpmf.errors import InvalidArgument
from dpmf.methods.certified.plan import Plan, Stage
from dpmf.methods.certified.script import Crowd
from dpmf.methods.ease.defaults import MOST_HEAD, RELEASES, head_size, shares_of
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.calibration import Part, gaussian_events

USERS, POPULARITY, LINKS, PAIRS = RELEASES
_MATRICES = 6  # as large as that of all pairs, while it is estimated


@dataclass(frozen=True)
class EasePlan(Plan):
    """What is public about a run before it starts.

    Attributes:
        n_items: the size of the catalogue.
        head: how many items pairs are measured of, those that most people like; 0 for popularity alone. None lets the
            number of people decide.
        n_users: about how many people there are, if that was declared.
        budget: what may be spent.
        crowd: those who answer for themselves, whose number is public; None where one party holds all ratings.
        n_links: how many pairs of items are linked by their titles; 0 if links are not measured.
    """

    n_items: int
    head: int | None
    n_users: int | None
    budget: Budget
    crowd: Crowd | None = None
    n_links: int = 0

    @property
    def known_users(self) -> int | None:
        """The number of people, if it is public."""
        return self.n_users if self.crowd is None else self.crowd.n_users

    @property
    def counts_users(self) -> bool:
        """Whether the number of people has to be released, because the head follows from it."""
        return self.known_users is None and self.head != 0

    def head_for(self, n_users: float) -> int:
        """Return the number of items in the head for a noisy count of people."""
        return head_size(self.budget.epsilon, n_users, self.n_items) if self.head is None else self.most_head

    def released_heads(self, headcount: float | None) -> Collection[int]:
        """Return how many items may be in the head of a release, given the number of users as released, if it was.

        It is empty where nothing stands out; where links say something, items beyond the head are in it, too.
        """
        if self.measures_links:
            return range(min(MOST_HEAD, self.n_items) + 1)
        if self.counts_users and headcount is None:
            raise InvalidArgument("the number of users, from which the head follows, is missing")
        return 0, self.head_for(counted_users(headcount or 0.0) if self.counts_users else float(self.known_users or 1))

    @property
    def most_head(self) -> int:
        """The most items that the head may have."""
        if self.head is not None:
            return min(self.head, self.n_items)
        if self.known_users is not None:
            return head_size(self.budget.epsilon, self.known_users, self.n_items)
        return min(MOST_HEAD, self.n_items)

    @property
    def most_factors(self) -> int:
        """The factors of a person: none, items are ranked by a person's items themselves."""
        return 0

    @property
    def sum_size(self) -> int:
        """The most numbers that are asked for at once."""
        return max(self.n_items, self._most_linked, self._most_last)

    @property
    def working_size(self) -> int:
        """How many numbers are in memory beside sums, while the matrix of pairs is estimated."""
        size = min(MOST_HEAD, self.n_items) if self.measures_links else self.most_head
        return _MATRICES * size**2

    @property
    def measures_links(self) -> bool:
        """Whether linked pairs are released on their own."""
        return self.n_links > 0 and self.most_head > 0

    @property
    def may_replace_pairs(self) -> bool:
        """Whether links, or groups, may be measured in place of pairs: not if somebody has agreed to something else."""
        return self.measures_links and self.head is None and self.crowd is None

    def events(self) -> tuple[GaussianEvent, ...]:
        """Return what will be released, with as much noise as the budget asks for."""
        return gaussian_events(self.budget, self.parts())

    def parts(self) -> list[Part]:
        """Return the releases, and the part of the budget that each of them gets; every share of noise is counted."""
        n_shares = 1 if self.crowd is None else self.crowd.n_shares
        sizes = {USERS: 1, POPULARITY: self.n_items, LINKS: self._most_linked, PAIRS: self._most_last}
        shares = shares_of(linked=self.measures_links)
        return [Part(what, shares[what], coordinates=sizes[what] * n_shares) for what in self._releases]

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run, in order; together they make every release once."""
        counts = tuple(what for what in self._releases if what not in (LINKS, PAIRS))
        links = [Stage("linked pairs of items", (LINKS,))] if LINKS in self._releases else []
        pairs = [Stage("pairs of items", (PAIRS,))] if PAIRS in self._releases else []
        return Stage("the count of items", counts, essential=True), *links, *pairs

    @property
    def _may_fall_back(self) -> bool:
        """Whether items may be counted once more in place of pairs, because there turn out to be too few people."""
        return self.head is None and self.known_users is None

    @property
    def _most_linked(self) -> int:
        """The most numbers in the release of linked pairs."""
        if not self.measures_links:
            return 0
        return max(self.n_links + 1, self.n_items if self._may_fall_back else 0)

    @property
    def _most_last(self) -> int:
        """The most numbers in the last release: pairs, of items or groups, or items or linked pairs once more."""
        pairs = self.most_head * (self.most_head + 1) // 2
        links = self.n_links + 1 if self.may_replace_pairs else 0
        return max(pairs, links, self.n_items if self._may_fall_back else 0)

    @property
    def _releases(self) -> tuple[str, ...]:
        some = self.most_head > 0
        return (*[USERS] * self.counts_users, POPULARITY, *[LINKS] * self.measures_links, *[PAIRS] * some)


def counted_users(headcount: float) -> float:
    """Return a noisy number of people, at least 1."""
    return max(headcount, 1.0)
