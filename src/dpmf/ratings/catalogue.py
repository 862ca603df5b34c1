"""What dpmf knows about public rating data sets: where they are, what they hold, how their files are read.

Nothing is bundled: most publishers forbid redistribution. An entry says where the official archive is and which
arguments of `Ratings.read` and `Items.read` fit the files inside it, once a single top folder has been stripped.

>>> find("movielens-1m").scale
(1.0, 5.0)
>>> find("netflux")
Traceback (most recent call last):
    ...
dpmf.errors.InvalidArgument: unknown data set 'netflux': did you mean netflix?

Every address, checksum, size and licence was read in a public source. `Archive.source` names it for downloads. Sizes:
`items` counts the published item list, rated or not. The exact figures for MovieLens are those of the README that is
each entry's `homepage`; where another count is used, a comment says whose it is.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dpmf.errors import InvalidArgument


@dataclass(frozen=True)
class Archive:
    """Where the official distribution can be downloaded.

    Attributes:
        url: An http or https address of a zip or tar file.
        checksum: "md5:…" or "sha256:…" of that file; None when no public source states it.
        source: The public page or repository file in which address and checksum were read.
    """

    url: str
    checksum: str | None
    source: str


@dataclass(frozen=True)
class Dataset:
    """One public data set.

    Attributes:
        name: The name used on the command line, such as "movielens-1m".
        title: The name people know it by.
        scale: Lowest and highest possible rating.
        ratings: Number of ratings as published; 0 means "generated on demand".
        users: Number of users as published.
        items: Number of items in the published item list, rated or not.
        licence: What the publisher allows, in one sentence.
        homepage: The publisher's page or README.
        ratings_file: Path inside the unpacked folder, or a glob when there are several files; "" when built in.
        ratings_options: Keyword arguments for `Ratings.read`.
        items_file: Path of the item list inside the unpacked folder; None when there is none that can be read.
        items_options: Keyword arguments for `Items.read`.
        archive: The download; None when the data must be obtained by hand.
        obtain: How to get the data when `archive` is None.
    """

    name: str
    title: str
    scale: tuple[float, float]
    ratings: int
    users: int
    items: int
    licence: str
    homepage: str
    ratings_file: str
    ratings_options: Mapping[str, object]
    items_file: str | None
    items_options: Mapping[str, object]
    archive: Archive | None
    obtain: str


_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_TFDS = "tensorflow/datasets tensorflow_datasets/url_checksums/movielens.txt"
_FETCHED = "run `dpmf data fetch`, or download the archive and unpack it"
_TRIPLETS = {"user": 0, "item": 1, "rating": 2}


def _movielens(
    size: str,
    counts: tuple[int, int, int],
    scale: tuple[float, float],
    ratings: tuple[str, Mapping[str, object]],
    items: tuple[str, Mapping[str, object]],
    checksum: str | None,
    source: str,
    readme: str,
    licence: str = (
        "GroupLens allows research use with acknowledgement; redistribution and commercial use need its permission."
    ),
) -> Dataset:
    """Describe one MovieLens release; `counts` are ratings, users, items, then come (file, options) of both lists."""
    return Dataset(
        name=f"movielens-{size}",
        title=f"MovieLens {size.upper()}",
        scale=scale,
        ratings=counts[0],
        users=counts[1],
        items=counts[2],
        licence=licence,
        homepage=_GROUPLENS + readme,
        ratings_file=ratings[0],
        ratings_options=ratings[1],
        items_file=items[0],
        items_options=items[1],
        archive=Archive(f"{_GROUPLENS}ml-{size}.zip", checksum, source),
        obtain=_FETCHED,
    )


def _plain(delimiter: str) -> Mapping[str, object]:
    """Return the options of a ratings file without header: user, item, rating, timestamp."""
    return {"format": "csv", "delimiter": delimiter, "header": False, "columns": {**_TRIPLETS, "timestamp": 3}}


def _named(**columns: str) -> Mapping[str, object]:
    """Return the options of a comma-separated file whose header has the names in `columns`."""
    return {"delimiter": ",", "header": True, "columns": columns}


_DAT_ITEMS: Mapping[str, object] = {
    "delimiter": "::",
    "header": False,
    "columns": {"item": 0, "title": 1, "genres": 2},
}
_CSV_RATINGS = (
    "ratings.csv",
    {"format": "csv", **_named(user="userId", item="movieId", rating="rating", timestamp="timestamp")},
)
_CSV_ITEMS = ("movies.csv", {**_named(item="movieId", title="title", genres="genres"), "encoding": "utf-8"})

_ENTRIES = (
    _movielens(
        size="100k",
        counts=(100_000, 943, 1_682),
        scale=(1.0, 5.0),
        ratings=("u.data", _plain("\t")),
        # Genres are flag columns here, not one column of names: only id and title are used.
        items=(
            "u.item",
            {"delimiter": "|", "header": False, "columns": {"item": 0, "title": 1}, "encoding": "latin-1"},
        ),
        checksum="sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        source=_TFDS,
        readme="ml-100k-README.txt",
    ),
    _movielens(
        size="1m",
        # Items are the lines of movies.dat; the README says "approximately 3,900". Of these 3,706 have ratings.
        counts=(1_000_209, 6_040, 3_883),
        scale=(1.0, 5.0),
        ratings=("ratings.dat", _plain("::")),
        items=("movies.dat", {**_DAT_ITEMS, "encoding": "latin-1"}),
        checksum="sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        source=_TFDS,
        readme="ml-1m-README.txt",
    ),
    _movielens(
        size="10m",
        # Users as counted in RUCAIBox/RecSysDatasets README.md; the publisher's README says 71,567.
        counts=(10_000_054, 69_878, 10_681),
        scale=(0.5, 5.0),
        ratings=("ratings.dat", _plain("::")),
        items=("movies.dat", {**_DAT_ITEMS, "encoding": "utf-8"}),
        checksum="md5:ce571fd55effeba0271552578f2648bd",
        source="alibaba/FederatedScope federatedscope/mf/dataset/movielens.py",
        readme="ml-10m-README.html",
    ),
    _movielens(
        size="20m",
        counts=(20_000_263, 138_493, 27_278),
        scale=(0.5, 5.0),
        ratings=_CSV_RATINGS,
        items=_CSV_ITEMS,
        checksum="sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        source=_TFDS,
        readme="ml-20m-README.html",
    ),
    _movielens(
        size="25m",
        counts=(25_000_095, 162_541, 62_423),
        scale=(0.5, 5.0),
        ratings=_CSV_RATINGS,
        items=_CSV_ITEMS,
        checksum="sha256:8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
        source=_TFDS,
        readme="ml-25m-README.html",
    ),
    _movielens(
        size="32m",
        counts=(32_000_204, 200_948, 87_585),
        scale=(0.5, 5.0),
        ratings=_CSV_RATINGS,
        items=_CSV_ITEMS,
        checksum=None,
        source=_GROUPLENS + "ml-32m-README.html",
        readme="ml-32m-README.html",
        licence=(
            "GroupLens allows research use with acknowledgement and redistribution under the same terms; "
            "commercial use needs its permission."
        ),
    ),
    Dataset(
        name="netflix",
        title="Netflix Prize",
        scale=(1.0, 5.0),
        ratings=100_480_507,
        users=480_189,
        items=17_770,
        licence=(
            "Netflix allowed research use with acknowledgement; redistribution and commercial use need its permission."
        ),
        homepage="https://www.kaggle.com/netflix-inc/netflix-prize-data",
        ratings_file="combined_data_*.txt",
        ratings_options={"format": "netflix"},
        items_file="movie_titles.csv",
        items_options={"format": "netflix"},
        archive=None,
        obtain=(
            "sign in to Kaggle, download netflix-inc/netflix-prize-data, and unpack it (combined_data_1.txt to "
            "combined_data_4.txt and movie_titles.csv); Netflix itself no longer offers it"
        ),
    ),
    Dataset(
        # KDD Cup 2011, track 1, training part: kddcup.yahoo.com/datasets.php describes it. The counts are those that
        # cuMF/cumf_als README.md passes on its yahooMusic command line.
        name="yahoo-music",
        title="Yahoo! Music (KDD Cup 2011, track 1)",
        scale=(0.0, 100.0),
        ratings=252_800_275,
        users=1_000_990,
        items=624_961,
        licence="Yahoo Webscope gives it to academic researchers for non-commercial use under a signed agreement.",
        homepage="https://webscope.sandbox.yahoo.com/catalog.php?datatype=c",
        ratings_file="trainIdx1.txt",
        ratings_options={"format": "yahoo"},
        items_file=None,  # items are anonymous numbers
        items_options={},
        archive=None,
        obtain=(
            "ask Yahoo Webscope for data set C15 (Yahoo! Music user ratings) and unpack "
            "its folder ydata-ymusic-kddcup-2011-track1"
        ),
    ),
    Dataset(
        # 7,813,737 rows (RUCAIBox/RecSysDatasets README.md), of which 1,476,496 are -1, "watched but not rated".
        name="anime",
        title="Anime Recommendations Database",
        scale=(1.0, 10.0),
        ratings=6_337_241,
        users=69_600,  # with at least one rating; the publisher counts 73,516 with the unrated rows
        items=12_294,
        licence="The terms are those shown on the Kaggle page; the ratings come from myanimelist.net.",
        homepage="https://www.kaggle.com/datasets/CooperUnion/anime-recommendations-database",
        ratings_file="rating.csv",
        ratings_options={
            "format": "csv",
            **_named(user="user_id", item="anime_id", rating="rating"),
            "missing": -1,
        },
        items_file="anime.csv",
        items_options={**_named(item="anime_id", title="name", genres="genre"), "encoding": "utf-8"},
        archive=None,
        obtain="sign in to Kaggle, download CooperUnion/anime-recommendations-database, and unpack it",
    ),
    Dataset(
        name="goodbooks",
        title="Goodbooks-10k",
        scale=(1.0, 5.0),
        ratings=5_976_479,  # second release; quick_look.ipynb of the publisher's repository
        users=53_424,
        items=10_000,
        licence="Creative Commons Attribution-ShareAlike 4.0.",
        homepage="https://github.com/zygmuntz/goodbooks-10k",
        ratings_file="ratings.csv",
        ratings_options={"format": "csv", **_named(user="user_id", item="book_id", rating="rating")},
        items_file="books.csv",
        items_options={**_named(item="book_id", title="title"), "encoding": "utf-8"},
        archive=Archive(
            url="https://github.com/zygmuntz/goodbooks-10k/releases/download/v1.0/goodbooks-10k.zip",
            checksum="sha256:261b97b56db61f3fb2ce5aadbb13704d30179fcc986c17ace665a0af9ed00731",
            source="ludwig-ai/ludwig ludwig/datasets/configs/goodbooks_books.yaml",
        ),
        obtain=_FETCHED,
    ),
    Dataset(
        # The one Jester set that is a plain list of triplets; the others are spreadsheets, one row per user.
        name="jester",
        title="Jester jokes, data set 2 (2006–2009)",
        scale=(-10.0, 10.0),
        ratings=1_761_439,  # counted in public notebooks; the publisher says "over 1.7 million"
        users=59_132,
        items=150,
        licence="Free for research when the Eigentaste paper (Goldberg, Roeder, Gupta, Perkins 2001) is cited.",
        homepage="https://eigentaste.berkeley.edu/dataset/archive/",
        ratings_file="jester_ratings.dat",
        ratings_options={"format": "csv", "delimiter": "\t\t", "header": False, "columns": _TRIPLETS},
        items_file=None,  # jokes are HTML paragraphs, not a table
        items_options={},
        archive=Archive(
            url="https://eigentaste.berkeley.edu/dataset/archive/jester_dataset_2.zip",
            checksum=None,
            source="NicolasHug/Surprise surprise/builtin_datasets.py",
        ),
        obtain=_FETCHED,
    ),
    Dataset(
        name="synthetic",
        title="Synthetic ratings",
        scale=(1.0, 5.0),
        ratings=0,
        users=3_000,
        items=600,
        licence="Generated by dpmf on your machine; no terms apply.",
        homepage="",
        ratings_file="",
        ratings_options={},
        items_file=None,
        items_options={},
        archive=None,
        obtain="built in, nothing to fetch",
    ),
)

CATALOGUE: Mapping[str, Dataset] = MappingProxyType({dataset.name: dataset for dataset in _ENTRIES})
"""All known data sets by name."""


def find(name: str) -> Dataset:
    """Return the data set called `name`.

    Raises:
        InvalidArgument: There is none; the message suggests the closest names, or lists all.
    """
    try:
        return CATALOGUE[name]
    except KeyError:
        # The cutoff is low enough for the abbreviation ml-1m to suggest movielens-1m.
        close = difflib.get_close_matches(name.lower(), CATALOGUE, n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(CATALOGUE)}"
        raise InvalidArgument(f"unknown data set {name!r}: {advice}") from None


def folder_of(name: str) -> Path:
    """Return the folder in which the data set called `name` lives, whether or not it is there yet.

    It is `$DPMF_DATA/name` if that variable is set, else `$XDG_DATA_HOME/dpmf/name`, else
    `~/.local/share/dpmf/name`.

    Raises:
        InvalidArgument: There is no such data set.
    """
    dataset = find(name)
    if chosen := os.environ.get("DPMF_DATA"):
        root = Path(chosen).expanduser()
    else:
        xdg = Path(os.environ.get("XDG_DATA_HOME", ""))
        # The XDG specification says that a relative path is to be ignored.
        root = (xdg if xdg.is_absolute() else Path.home() / ".local" / "share") / "dpmf"
    return root / dataset.name
