"""Small sets of ratings in just the form in which they are published: names, separators, encodings, ends of lines."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

USERS, ITEMS = 60, 20
STARS = (1, 2, 3, 4, 5)
HALVES = (0.5, 3.0, 4.5, 5.0)
TENS = (4, 6, 8, 9, 10)
PLAYS = (1, 13, 900, 352698)
Rating = tuple[int, int, float]


def rated(values: Sequence[float]) -> list[Rating]:
    """Return user, item and one of these values, for about half of all pairs."""
    rng = np.random.default_rng(5)
    pairs = [(user, item) for user in range(1, USERS + 1) for item in range(1, ITEMS + 1) if rng.random() < 0.5]
    return [(user, item, values[int(rng.integers(len(values)))]) for user, item in pairs]


N = len(rated(STARS))


def put(path: Path, lines: Iterable[str], encoding: str = "utf-8", end: str = "\n") -> None:
    """Write lines, packed by gzip if the name says so."""
    content = "".join(line + end for line in lines).encode(encoding)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def of_ratings(form: str, values: Sequence[float] = STARS) -> list[str]:
    """Return a line a rating."""
    return [form.format(u=user, i=item, r=value) for user, item, value in rated(values)]


def of_items(form: str) -> list[str]:
    """Return a line an item."""
    return [form.format(i=item) for item in range(1, ITEMS + 1)]


def movielens_100k(folder: Path) -> None:
    put(folder / "u.data", of_ratings("{u}\t{i}\t{r}\t881250949"))
    put(folder / "u1.base", of_ratings("{u}\t{i}\t{r}\t881250949"))
    put(folder / "u.item", of_items("{i}|Café {i} (1995)|01-Jan-1995||http://x" + "|0" * 19), "latin-1")
    put(folder / "u.user", ["1|24|M|technician|85711"])


def movielens_1m(folder: Path) -> None:
    put(folder / "ratings.dat", of_ratings("{u}::{i}::{r}::978300760"))
    put(folder / "movies.dat", of_items("{i}::Café {i}, The (1995)::Animation|Children's"), "latin-1")
    put(folder / "users.dat", ["1::F::1::10::48067"])


def movielens_10m(folder: Path) -> None:
    put(folder / "ratings.dat", of_ratings("{u}::{i}::{r:g}::838985046", HALVES))
    put(folder / "movies.dat", of_items("{i}::Café {i}, The (1995)::Comedy|IMAX"))
    put(folder / "tags.dat", ["15::4973::excellent!::1215184630"])


def movielens_csv(folder: Path, end: str = "\n") -> None:
    put(
        folder / "ratings.csv",
        ["userId,movieId,rating,timestamp", *of_ratings("{u},{i},{r},964982703", HALVES)],
        end=end,
    )
    put(
        folder / "movies.csv",
        ["movieId,title,genres", *of_items('{i},"Café {i}, The (1995)",(no genres listed)')],
        end=end,
    )
    put(folder / "tags.csv", ["userId,movieId,tag,timestamp", "2,6,funny,1445714994"], end=end)
    put(folder / "links.csv", ["movieId,imdbId,tmdbId", "1,0114709,862"], end=end)
    put(folder / "genome-scores.csv", ["movieId,tagId,relevance", "1,1,0.025"], end=end)


def movielens_small(folder: Path) -> None:
    movielens_csv(folder, "\r\n")


def movielens_kaggle(folder: Path) -> None:
    rows = of_ratings('{u},{i},{r},"2005-04-02 23:53:47"', HALVES)
    put(folder / "rating.csv", ['"userId","movieId","rating","timestamp"', *rows])
    put(folder / "movie.csv", ['"movieId","title","genres"', *of_items('{i},"Café {i}, The (1995)","Comedy|Drama"')])


def movietweetings(folder: Path) -> None:
    put(folder / "ratings.dat", of_ratings("{u}::{i:07d}::{r}::1381620027", (0, *TENS, *TENS, *TENS)))
    put(folder / "movies.dat", of_items("{i:07d}::Café {i} (1894)::Documentary|Short"))


def hetrec_movielens(folder: Path) -> None:
    header = "userID\tmovieID\trating\tdate_day\tdate_month\tdate_year\tdate_hour\tdate_minute\tdate_second"
    rows = of_ratings("{u}\t{i}\t{r}\t29\t10\t2006\t23\t17\t16", HALVES)
    put(folder / "user_ratedmovies.dat", [header, *rows], end="\r\n")
    timed = ["userID\tmovieID\trating\ttimestamp", *of_ratings("{u}\t{i}\t{r}\t1162160236000", HALVES)]
    put(folder / "user_ratedmovies-timestamps.dat", timed, end="\r\n")
    movies = of_items('{i}\tCafé {i}\t0114709\tToy "Story"\thttp://x\t1995')
    put(folder / "movies.dat", ["id\ttitle\timdbID\tspanishTitle\timdbPictureURL\tyear", *movies], "latin-1", "\r\n")


def book_crossing(folder: Path) -> None:
    rows = of_ratings('"{u}";"04{i:07d}X";"{r}"', (0, 0, 5, 8, 10))
    rows += ['"276999";"\\"0432534220\\"";"0"', '"277000";"caf\xe9";"7"']
    put(folder / "BX-Book-Ratings.csv", ['"User-ID";"ISBN";"Book-Rating"', *rows], "latin-1", "\r\n")
    books = of_items('"04{i:07d}X";"Caf\xe9 {i} \\"Noir\\"; a tale";"A. B.";"2002"')
    books.append('"caf\xe9";"No ISBN";"A. B.";"0"')
    named = '"ISBN";"Book-Title";"Book-Author";"Year-Of-Publication"'
    put(folder / "BX-Books.csv", [named, *books], "latin-1", "\r\n")
    put(folder / "BX-Users.csv", ['"User-ID";"Location";"Age"', '"1";"nyc";NULL'], end="\r\n")


def book_crossing_kaggle(folder: Path) -> None:
    put(folder / "Ratings.csv", ["User-ID,ISBN,Book-Rating", *of_ratings("{u},04{i:07d}X,{r}", (0, 0, 5, 8, 10))])
    books = of_items('04{i:07d}X,"Café {i} ""Noir"", a tale",A. B.,2002')
    put(folder / "Books.csv", ["ISBN,Book-Title,Book-Author,Year-Of-Publication", *books])
    put(folder / "Users.csv", ["User-ID,Location,Age", '1,"nyc, usa",'])


def book_crossing_2021(folder: Path) -> None:
    put(
        folder / "Ratings.csv", ["User-ID;ISBN;Rating", *of_ratings("{u};04{i:07d}X;{r}", (0, 0, 5, 8, 10))], end="\r\n"
    )
    books = of_items("04{i:07d}X;Café {i};A. B.;2002;P.")
    put(folder / "Books.csv", ["ISBN;Title;Author;Year;Publisher", *books], end="\r\n")


def lastfm_hetrec(folder: Path) -> None:
    put(folder / "user_artists.dat", ["userID\tartistID\tweight", *of_ratings("{u}\t{i}\t{r}", PLAYS)], end="\r\n")
    artists = of_items('{i}\tCafé "{i}"\thttp://x\thttp://y')
    put(folder / "artists.dat", ["id\tname\turl\tpictureURL", *artists])
    put(folder / "tags.dat", ["tagID\ttagValue", "1\tmetal"], end="\r\n")


def lastfm_360k(folder: Path) -> None:
    rows = of_ratings('{u:040x}\tf{i}\t"weird al" no. {i}\t{r}', (1, 13, 0, 900))
    put(folder / "usersha1-artmbid-artname-plays.tsv", rows)
    put(folder / "usersha1-profile.tsv", ["00\tf\t22\tGermany\tFeb 1, 2007"])


def lastfm_1k(folder: Path) -> None:
    rows = of_ratings('user_{u:06d}\t2009-05-04T23:08:57Z\tf{i}\tCafé "{i}" Trio\t\tFuck Me Im Famous (Pacha "Ibiza)')
    put(folder / "userid-timestamp-artid-artname-traid-traname.tsv", rows)
    put(folder / "userid-profile.tsv", ["#id\tgender\tage\tcountry\tregistered"])


def yahoo_r3(folder: Path) -> None:
    put(folder / "ydata-ymusic-rating-study-v1_0-train.txt", of_ratings("{u}\t{i}\t{r}"))
    put(folder / "ydata-ymusic-rating-study-v1_0-test.txt", ["1\t2\t3"])


def taste_profile(folder: Path) -> None:
    put(folder / "train_triplets.txt", of_ratings("{u:040x}\tSO{i}\t{r}", PLAYS))


def jester_1(folder: Path) -> None:
    pytest.importorskip("xlrd")
    book = pytest.importorskip("xlwt").Workbook()
    sheet = book.add_sheet("jester-data-1-new")
    matrix = np.full((USERS, ITEMS), 99.0)
    for user, item, value in rated((-9.95, -3.5, 0.0, 7.82, 10.0)):
        matrix[user - 1, item - 1] = value
    for place, row in enumerate(matrix):
        for column, cell in enumerate([float((row != 99).sum()), *row.tolist()]):
            sheet.write(place, column, cell)
    book.save(str(folder / "jester-data-1.xls"))


def jester_csv(folder: Path) -> None:
    matrix = np.full((USERS, ITEMS), 99.0)
    for user, item, value in rated((-9.95, -3.5, 0.0, 7.82, 10.0)):
        matrix[user - 1, item - 1] = value
    put(
        folder / "jester-data-1.csv",
        [",".join([f"{(row != 99).sum()}", *(f"{one:g}" for one in row)]) for row in matrix],
    )


def jester_2(folder: Path) -> None:
    put(folder / "jester_ratings.dat", of_ratings("{u}\t\t{i}\t\t{r:.3f}", (-9.281, 0.219, 8.781)))
    put(folder / "jester_items.dat", of_items("{i}:\nA man walks into a bar, and says: {i}.\n"))


def ciao(folder: Path) -> None:
    rows = [(user, item, 1 + item % 6, value, item % 5) for user, item, value in rated(STARS)]
    scipy.io.savemat(folder / "rating.mat", {"rating": np.array(rows, float)})
    scipy.io.savemat(folder / "trustnetwork.mat", {"trustnetwork": np.ones((3, 2))})


def epinions_timed(folder: Path) -> None:
    rows = [(user, item, 1 + item % 6, value, item % 5, 978300760) for user, item, value in rated(STARS)]
    scipy.io.savemat(folder / "rating_with_timestamp.mat", {"rating_with_timestamp": np.array(rows, float)})


def epinions_text(folder: Path) -> None:
    put(folder / "ratings_data.txt", of_ratings("{u} {i} {r}"))
    put(folder / "trust_data.txt", [" 22605 42915 1"])


def filmtrust(folder: Path) -> None:
    put(folder / "ratings.txt", of_ratings("{u} {i} {r}", (0.5, 2, 3.5, 4)))
    put(folder / "trust.txt", ["2 966 1"])


def ciao_dvd(folder: Path) -> None:
    put(folder / "movie-ratings.txt", of_ratings("{u},{i},3,27,{r},2011-02-12"))


def goodbooks_first(folder: Path) -> None:
    put(folder / "ratings.csv", ["book_id,user_id,rating", *of_ratings("{i},{u},{r}")])
    books = of_items('{i},{i}000,77,"Café {i}, a tale"')
    put(folder / "books.csv", ["id,book_id,best_book_id,title", *books])
    put(folder / "to_read.csv", ["user_id,book_id", "1,112"])


def goodbooks_second(folder: Path) -> None:
    put(folder / "ratings.csv", ["user_id,book_id,rating", *of_ratings("{u},{i},{r}")])
    books = of_items('{i},{i}000,77,"Café {i}, a tale"')
    put(folder / "books.csv", ["book_id,goodreads_book_id,best_book_id,title", *books])


def anime(folder: Path) -> None:
    put(folder / "rating.csv", ["user_id,anime_id,rating", *of_ratings("{u},{i},{r}", (-1, -1, 6, 8, 10))])
    named = of_items('{i},Café &quot;{i}&quot;,"Drama, Romance, School",Movie,1,9.37,200630')
    put(folder / "anime.csv", ["anime_id,name,genre,type,episodes,rating,members", *named])


def netflix(folder: Path) -> None:
    ratings = rated(STARS)
    for number in (1, 2):
        items = range(number, ITEMS + 1, 2)
        rows = {one: [f"{user},{value},2005-09-06" for user, item, value in ratings if item == one] for one in items}
        put(folder / f"combined_data_{number}.txt", (line for item, of in rows.items() for line in (f"{item}:", *of)))
    put(folder / "movie_titles.csv", of_items("{i},2003,Café, Part {i}"), "latin-1")


def netflix_prize(folder: Path) -> None:
    ratings = rated(STARS)
    for one in range(1, ITEMS + 1):
        rows = [f"{user},{value},2005-09-06" for user, item, value in ratings if item == one]
        put(folder / "training_set" / f"mv_{one:07d}.txt", [f"{one}:", *rows])
    put(folder / "movie_titles.txt", of_items("{i},2003,Café, Part {i}"), "latin-1")
    put(folder / "probe.txt", ["1:", "30878"])


def amazon_2014(folder: Path) -> None:
    put(folder / "ratings_Beauty.csv", of_ratings("A{u}VVOVN,{i:010d},{r:.1f},1369699200"))


def amazon_2023(folder: Path) -> None:
    rows = of_ratings("AE{u}TQ,B0{i}X,{r:.1f},1588687728923")
    put(folder / "All_Beauty.csv.gz", ["user_id,parent_asin,rating,timestamp", *rows])


def amazon_json(folder: Path) -> None:
    form = (
        '{{"reviewerID": "A{u}", "asin": "{i:010d}", "helpful": [0, 1], "overall": {r:.1f}, "summary": "a, \\"b\\"", '
    )
    put(folder / "reviews_Beauty_5.json.gz", of_ratings(form + '"unixReviewTime": 1369699200}}'))


def yelp(folder: Path) -> None:
    form = '{{"review_id":"x","user_id":"u{u}","business_id":"b{i}","stars":{r:.1f},"useful":0,'
    put(
        folder / "yelp_academic_dataset_review.json", of_ratings(form + '"text":"a\\nb","date":"2018-07-07 22:09:11"}}')
    )
    form = '{{"business_id":"b{i}","name":"Caf\\u00e9 {i}, \\"Noir\\"","city":"X","attributes":{{"WiFi":null}},'
    put(folder / "yelp_academic_dataset_business.json", of_items(form + '"categories":"Bars, Food"}}'))


def libimseti(folder: Path) -> None:
    put(folder / "ratings.dat", of_ratings("{u},{i},{r}", (1, 4, 8, 10)))
    put(folder / "gender.dat", ["1,F"])


def retail_rocket(folder: Path) -> None:
    rows = of_ratings("1433221332117,{u},view,{i},")
    put(folder / "events.csv", ["timestamp,visitorid,event,itemid,transactionid", *rows])


def goodreads(folder: Path) -> None:
    rows = of_ratings("{u},{i},1,{r},0", (0, 0, 3, 4, 5))
    put(folder / "goodreads_interactions.csv", ["user_id,book_id,is_read,rating,is_reviewed", *rows])


@dataclass(frozen=True)
class Published:
    """A set of ratings, and what is to be understood of it.

    Attributes:
        write: makes its files in a folder.
        source: of them, what is described; "" for the folder.
        scale: as it is found.
        title: of some item.
        ratings: how many there are.
    """

    write: Callable[[Path], Any]
    source: str
    scale: str
    title: str
    ratings: int = N


def _without(values: Sequence[float], nothing: float) -> int:
    return sum(value != nothing for _, _, value in rated(values))


_BOOKS, _FEWER = (0, 0, 5, 8, 10), _without((0, 0, 5, 8, 10), 0)
SETS = {
    "ml-100k": Published(movielens_100k, "", "1:5", "Café 3 (1995)"),
    "ml-1m": Published(movielens_1m, "", "1:5", "Café 3, The (1995)"),
    "ml-10m": Published(movielens_10m, "", "0.5:5", "Café 3, The (1995)"),
    "ml-20m": Published(movielens_csv, "", "0.5:5", "Café 3, The (1995)"),
    "ml-latest-small": Published(movielens_small, "", "0.5:5", "Café 3, The (1995)"),
    "ml-20m-kaggle": Published(movielens_kaggle, "rating.csv", "0.5:5", "Café 3, The (1995)"),
    "movietweetings": Published(movietweetings, "", "0:10", "Café 3 (1894)"),
    "hetrec-movielens": Published(hetrec_movielens, "", "0.5:5", "Café 3"),
    "book-crossing": Published(book_crossing, "", "1:10", 'Café 3 "Noir"; a tale', _FEWER + 1),
    "book-crossing-kaggle": Published(book_crossing_kaggle, "Ratings.csv", "1:10", 'Café 3 "Noir", a tale', _FEWER),
    "book-crossing-2021": Published(book_crossing_2021, "Ratings.csv", "1:10", "Café 3", _FEWER),
    "lastfm-hetrec": Published(lastfm_hetrec, "", "counts", 'Café "3"'),
    "lastfm-360k": Published(lastfm_360k, "", "counts", '"weird al" no. 3', _without((1, 13, 0, 900), 0)),
    "lastfm-1k": Published(lastfm_1k, "", "counts", 'Café "3" Trio'),
    "taste-profile": Published(taste_profile, "", "counts", "SO3"),
    "yahoo-r3": Published(yahoo_r3, "", "1:5", "3"),
    "jester-1": Published(jester_1, "jester-data-1.xls", "-10:10", "3"),
    "jester-csv": Published(jester_csv, "jester-data-1.csv", "-10:10", "3"),
    "jester-2": Published(jester_2, "", "-10:10", "3"),
    "ciao": Published(ciao, "", "1:5", "3"),
    "epinions-timed": Published(epinions_timed, "", "1:5", "3"),
    "epinions-text": Published(epinions_text, "ratings_data.txt", "1:5", "3"),
    "filmtrust": Published(filmtrust, "ratings.txt", "0.5:5", "3"),
    "goodbooks-first": Published(goodbooks_first, "", "1:5", "Café 3, a tale"),
    "goodbooks-second": Published(goodbooks_second, "", "1:5", "Café 3, a tale"),
    "anime": Published(anime, "rating.csv", "1:10", 'Café "3"', _without((-1, -1, 6, 8, 10), -1)),
    "netflix": Published(netflix, "", "1:5", "Café, Part 3 (2003)"),
    "netflix-prize": Published(netflix_prize, "", "1:5", "Café, Part 3 (2003)"),
    "amazon-2014": Published(amazon_2014, "ratings_Beauty.csv", "1:5", f"{3:010d}"),
    "amazon-2023": Published(amazon_2023, "All_Beauty.csv.gz", "1:5", "B03X"),
    "amazon-json": Published(amazon_json, "", "1:5", f"{3:010d}"),
    "yelp": Published(yelp, "", "1:5", 'Café 3, "Noir"'),
    "libimseti": Published(libimseti, "", "1:10", "3"),
    "retail-rocket": Published(retail_rocket, "events.csv", "counts", "3"),
    "goodreads": Published(goodreads, "goodreads_interactions.csv", "1:5", "3", _without((0, 0, 3, 4, 5), 0)),
}
PACKED = ("ml-20m", "book-crossing", "lastfm-hetrec", "jester-1", "netflix")


def pack(folder: Path, archive: Path) -> None:
    """Put the files of a folder into a zip archive, in a folder of that name."""
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"__MACOSX/._{folder.name}", b"\0\1")
        for file in sorted(folder.rglob("*"), reverse=True):
            packed.write(file, file.relative_to(folder.parent).as_posix())
