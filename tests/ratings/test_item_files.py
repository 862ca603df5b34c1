"""Files of items in exactly the forms in which they are published."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpmf.ratings import Items, Ratings

if TYPE_CHECKING:
    from ratings.conftest import Refused

MOVIELENS = (
    b'movieId,title,genres\r\n1,Toy Story (1995),Adventure|Animation\r\n11,"American President, The (1995)",Comedy\r\n'
)
BOOKS = (
    b'"ISBN";"Book-Title";"Book-Author";"Year-Of-Publication";"Publisher";"Image-URL-S"\r\n'
    b'"0195153448";"Classical Mythology";"Mark P. O. Morford";"2002";"Oxford University Press";"http://a/b.jpg"\r\n'
    b'"074322678X";"Where You\'ll Find Me: And \\"Other\\" Stories; etc.";"Ann Beattie";"2002";"Scribner";"http://c"\r\n'
    b'"3257224281";"Fr\xe4ulein Smillas Gesp\xfcr";"Peter H\xf8eg";"1997";"Diogenes";"http://d"\r\n'
)
ARTISTS = (
    b"id\tname\turl\tpictureURL\n1\tMALICE MIZER\thttp://www.last.fm/music/MALICE+MIZER\thttp://x/1.jpg\n"
    b'7\tMarilyn "Manson", live\thttp://y\thttp://z\n'.replace(b'"', b"")
)
PUBLISHED: dict[str, tuple[bytes, dict[object, str]]] = {
    "movies.csv": (MOVIELENS, {1: "Toy Story (1995)", 11: "American President, The (1995)"}),
    "movies.dat": (
        b"1::Toy Story (1995)::Animation|Children's\n73::Mis\xe9rables, Les (1995)::Drama|Musical\n",
        {1: "Toy Story (1995)", 73: "Misérables, Les (1995)"},
    ),
    "u.item": (
        b"1|Toy Story (1995)|01-Jan-1995||http://us.imdb.com/M/title-exact|0|0\n12|Usual Suspects, The|||http|0|1\n",
        {1: "Toy Story (1995)", 12: "Usual Suspects, The"},
    ),
    "BX-Books.csv": (
        BOOKS,
        {
            "0195153448": "Classical Mythology",
            "074322678X": 'Where You\'ll Find Me: And "Other" Stories; etc.',
            "3257224281": "Fräulein Smillas Gespür",
        },
    ),
    "artists.dat": (ARTISTS, {1: "MALICE MIZER", 7: "Marilyn Manson, live"}),
    "artists.tsv": (  # quotes that are text: an open one would take in what follows
        b'id\tname\n1\t"Weird Al" Yankovic\n2\t"Open\n3\tThree\n',
        {1: '"Weird Al" Yankovic', 2: '"Open', 3: "Three"},
    ),
    "movie_titles.csv": (
        b"1,2003,Dinosaur Planet\n2,NULL,Roti, Kapada Aur Makaan\n",
        {1: "Dinosaur Planet (2003)", 2: "Roti, Kapada Aur Makaan"},
    ),
    "entities.csv": (
        b"item,title\n1,Life &amp; Times &#39;99\n2,AT&T; R&D\n",
        {1: "Life & Times '99", 2: "AT&T; R&D"},
    ),
    "anime.csv": (b"\xef\xbb\xbfanime_id,name,genre\n5,Kimi no Na wa.,Drama\n", {5: "Kimi no Na wa."}),
    "books.csv": (
        b"id,book_id,isbn,original_title,title\n1,2767052,439023483,Hunger,The Hunger Games\n",
        {2767052: "The Hunger Games"},
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_items_are_read_as_they_are_published(name: str, tmp_path: Path) -> None:
    content, expected = PUBLISHED[name]
    (tmp_path / name).write_bytes(content)
    items = Items.read(tmp_path / name)
    assert dict(zip(items.ids, items.titles, strict=True)) == expected


def test_without_names_the_third_of_three_columns_has_the_genres_and_that_of_more_may_have_anything(
    tmp_path: Path,
) -> None:
    for name, genres in (("u.item", ("", "")), ("movies.dat", ("Animation|Children's", "Drama|Musical"))):
        (tmp_path / name).write_bytes(PUBLISHED[name][0])
        assert Items.read(tmp_path / name).genres == genres


@pytest.mark.parametrize(
    ("content", "title", "said"),
    [
        ("é".encode(), "é", ""),
        (b"\xe9", "é", "Latin-1"),
        (b"\x93\xe9\x94", "“é”", "CP-1252"),
        (b"\x81\xe9", "\x81é", "Latin-1"),
    ],
)
def test_the_encoding_is_found_and_said(
    content: bytes, title: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "items.csv").write_bytes(b"item,title\n1," + content + b"\n")
    with caplog.at_level(logging.WARNING):
        assert Items.read(tmp_path / "items.csv").titles == (title,)
    assert (said in caplog.text) if said else not caplog.text


def test_an_encoding_that_is_given_is_not_looked_for(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "items.csv").write_bytes(b"item,title\n1,\x93\xe9\n")
    assert Items.read(tmp_path / "items.csv", encoding="latin-1").titles == ("\x93é",)
    with refused("not utf-8 text", "item_encoding"):
        Items.read(tmp_path / "items.csv", encoding="utf-8")


@pytest.mark.parametrize(
    ("field", "title"),
    [
        (r'"a \"b\" c"', 'a "b" c'),
        (r'"a \"b\" \\ c"', 'a "b" \\ c'),
        ('"a ""b"" c"', 'a "b" c'),
        ('"C:\\"', "C:\\"),
        (r"AC\DC", r"AC\DC"),
        ('"a \\""b"', 'a \\"b'),
    ],
)
def test_quotes_in_titles_are_doubled_or_behind_a_backslash(field: str, title: str, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(f"item,title,genres\n1,{field},x\n")
    items = Items.read(tmp_path / "items.csv")
    assert (items.titles, items.genres) == ((title,), ("x",))


@pytest.mark.parametrize(
    "given",
    [
        {"item_columns": {"item": "Nr", "title": "Was"}},
        {"item_columns": {"item": 0, "title": 1}, "item_delimiter": ";", "item_encoding": "cp1252"},
    ],
)
def test_ratings_take_how_their_items_are_written(given: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("user,item,rating\nann,7,4\n")
    (tmp_path / "catalogue.txt").write_bytes(b"Nr;Was\n7;Caf\xe9\n")
    ratings = Ratings.read(tmp_path / "ratings.csv", items=tmp_path / "catalogue.txt", **given)
    assert ratings.catalogue.titles[-1] == "Café"
    assert ratings.catalogue.ids[int(ratings.items[0])] in (7, "7")


def test_a_description_of_items_that_are_not_given_is_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "ratings.csv").write_text("user,item,rating\nann,7,4\n")
    with refused("item_encoding", "items=…"):
        Ratings.read(tmp_path / "ratings.csv", item_encoding="latin-1")
