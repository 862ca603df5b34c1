"""Bad input ends with one clear line and a non-zero exit, and writes nothing."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmf.model import Release

Command = Callable[..., subprocess.CompletedProcess[str]]

GOOD = "user,item,rating\nann,Heat,5\nbob,Heat,3\nann,Up,1\n"
FILES = {
    "good.csv": GOOD,
    "empty.csv": "",
    "header_only.csv": "user,item,rating\n",
    "nan.csv": "user,item,rating\nann,Heat,5\nbob,Heat,nan\n",
    "words.csv": "user,item,rating\nann,Heat,5\nbob,Heat,great\n",
    "no_rating.csv": "user,item,mood\nann,Heat,5\n",
    "two_columns.csv": "user,item\nann,Heat\n",
    "halves.csv": "user,item,rating\nann,1,0.5\nann,2,4.5\n",
    "jokes.csv": "user,item,rating\nann,1,-9.5\nann,2,10\n",
    "two_ways.dat": "a;b;c,Heat,4\n",
    "headless.csv": "ann,1,5\n",
    "jester.csv": "2,1,99,3,99\n1,99,2,99,99\n",
    "number.csv": "number,label\n1,Heat\n",
    "mine.csv": "The Silent Orbit,5\n",
    "mine_off.csv": "The Silent Orbit,9\n",
    "mine_nan.csv": "The Silent Orbit,nan\n",
    "mine_twice.csv": "The Silent Orbit,5\nThe Silent Orbit,4\n",
    "mine_words.csv": "The Silent Orbit,great\n",
    "mine_elsewhere.csv": "Never Made,4\n",
    "budget_twice.csv": "ann,1\nann,2\n",
    "budget_nan.csv": "ann,nan\n",
    "budget_space.csv": "ann,1\n bob,1\n",
    "budget_quote.csv": 'ann,"1\nbob,1\ncarl,1"\n',
    "budget_long.csv": "a" * 200_000 + ",1\n",
    "file/": "",
    "taken/thesis.tex": "years of work",
    "damaged/release.json": "{",
}
TRAIN = "train good.csv --method sgd --epochs 1"
RECOMMEND = "recommend {release} --ratings"

BAD = {
    "train nowhere.csv --method sgd": "no data at nowhere.csv",
    "train movielens-1m --method sgd": "run `dpmf data fetch movielens-1m`",
    "train empty.csv --method sgd": "empty.csv is empty",
    "evaluate {release} good.csv --cluster local:2": "good.csv is not a block store",
    "evaluate {release} good.csv --cluster local:2 --test good.csv": "--test needs all ratings in one place",
    "train good.csv --method sgd --cluster here": "--cluster here is not known: give local:N, auto, HOST:PORT",
    "train good.csv --method sgd --workers 2": "--workers are those of a cluster: name it with --cluster",
    "train good.csv --method sgd --cluster local:2 --workers 3": "--workers 3: local:2 says how many there are",
    "train good.csv --method sgd --cluster local:0": "0 workers: give a whole number from 1 to 4096",
    "train good.csv --method sgd --cluster local:2": "is not a block store: `dpmf data ingest good.csv STORE`",
    "train good.csv --method sgld --epsilon inf --cluster local:2": "good.csv is not a block store",
    "data ingest good.csv store --cluster local:2": "a cluster ingests Parquet files, and good is of the csv format",
    "recommend-all {release} --ratings good.csv --out lists --cluster local:2": "good.csv is not a block store",
    "recommend-all {release} --out lists --cluster local:2": "a release knows no users: name their ratings",
    "recommend-all {release} --ratings store --memory 1GB --out lists --cluster local:2": "--memory is for one machine",
    "data ingest good.csv store --strips 0": "--strips 0: give a whole number from 1 to 4096",
    "train header_only.csv --method sgd": "no ratings",
    "train nan.csv --method sgd --out r": "row 3 is missing, infinite or not a number",
    "train words.csv --method sgd --out r": "row 3 is missing, infinite or not a number",
    "train no_rating.csv --method sgd": "no column for the rating: it has user, item, mood",
    "train two_columns.csv --method sgd": "fewer than three columns",
    "train good.csv --method sgd --scale 1:4 --out r": "the rating 5 in row 2 is off the scale 1:4",
    "train good.csv --method sgd --scale 5:1": "not a scale",
    "train good.csv --method sgd --scale five": "not a scale",
    "train good.csv --method sgd --columns user=uid": "no column 'uid'",
    "train good.csv --method sgd --columns user": "ROLE=NAME",
    "train good.csv --method sgd --columns who=0": "no role 'who'",
    "train good.csv --method sgd --items nowhere.csv": "no file nowhere.csv",
    "train good.csv --method sgd --format xls": "'xls' is not one of",
    "train good.csv --method svd": "'svd' is not",
    "train good.csv": "joint needs --epsilon: a number such as 1 to be private, or inf",
    "train good.csv --epsilon 1": "the lowest and the highest that there can be, give --scale 1:5",
    "train halves.csv --epsilon 1": "give --scale 0.5:4.5",
    "train halves.csv --epsilon 1 --scale 0.5:4.5 --memory 1GB": "name its file with --items, or assert",
    "train halves.csv --method sgd --scale 1:5": "describe` finds, or --missing 0.5 if that means no rating",
    "train jester.csv --epsilon 1": "5 unnamed columns: say --layout wide if each line is a user and",
    "train jester.csv --method sgd --layout wide --no-header --scale -10:10": "that means no rating, --missing VALUE",
    "train jester.csv --method sgd --layout wide --bad-rows skip --no-header": "leave out --bad-rows skip",
    "train good.csv --method sgd --encoding utf-16": "--encoding utf-16 is not known: choose from utf-8, latin-1",
    "train good.csv --method sgd --leading 1": "say --layout wide",
    "train jokes.csv --epsilon 1": "give --scale -9.5:10",
    "train no_rating.csv --method als --epsilon 1": "name it with --columns rating=NAME",
    "train two_ways.dat --method sgd --no-header": "say which with --delimiter",
    "train headless.csv --method sgd": "say --header or --no-header",
    "train good.csv --method sgd --items number.csv": "name it with --item-columns item=NAME",
    "train good.csv --method sgd --item-features gone.npy": "--item-features gone.npy describes a public list of items",
    "train good.csv --method sgd --item-encoding latin-1": "--item-encoding describes a file of items: name it with",
    "train good.csv --method sgd --items number.csv --item-columns no": "ROLE=NAME pairs, such as item=isbn",
    "train good.csv --method sgd --duplicates sum": "--duplicates sum is for counts",
    "train good.csv --epsilon 1 --scale 1:5": "name its file with --items, or assert with --items-public that",
    "train good.csv --epsilon -1": "--epsilon -1 should be above 0",
    "train good.csv --epsilon nan": "--epsilon nan should be above 0",
    "train good.csv --epsilon 1 --delta 2": "--delta 2 should be above 0 and below 1",
    "train good.csv --epsilon 1 --mode paper": "--mode paper",
    "train good.csv --epsilon 1 --cap 3": "name its file with --ledger",
    "train good.csv --epsilon 1 --ledger none.json": "no ledger none.json",
    "train good.csv --epsilon 1 --user-budgets nowhere.csv": "cannot read --user-budgets nowhere.csv",
    "train good.csv --epsilon 1 --user-budgets budget_twice.csv": "line 2 of budget_twice.csv names a user",
    "train good.csv --epsilon 1 --user-budgets budget_nan.csv": "line 1 of budget_nan.csv should be user,epsilon",
    "train good.csv --epsilon 1 --user-budgets budget_space.csv": "line 2 of budget_space.csv should be user,epsilon",
    "train good.csv --epsilon 1 --user-budgets budget_quote.csv": "cannot read --user-budgets budget_quote.csv",
    "train good.csv --epsilon 1 --user-budgets budget_long.csv": "cannot read --user-budgets budget_long.csv",
    "train good.csv --epsilon 1 --sign-key key.pem": "a key signs the release that is saved",
    "train good.csv --for ratings --epsilon 1 --ledger new.json --cap 2 --set cap=x": "cap='x'",
    "train good.csv --epsilon 1 --ledger new.json --cap 2 --out taken": "holds other files",
    "train good.csv --epsilon 1 --ledger good.csv --cap 2": "is not JSON",
    "train good.csv --epsilon 1 --set items_public=false": "items_public='false'",
    "ledger good.csv": "is not JSON",
    "ledger file": "Is a directory",
    f"{TRAIN} --cap 2": "--cap is for private methods",
    f"{TRAIN} --memory 1{'0' * 400}": "is not an amount of memory",
    f"{TRAIN} --threads 1000000": "--threads 1000000: give a whole number from 1 to 1024",
    "train good.csv --epsilon 1 --user-budgets good.csv": "line 1 of good.csv should be user,epsilon",
    "train good.csv --epsilon 1 --out rel --sign-key good.csv": "holds no private key",
    "train good.csv --epsilon inf --memory 1KB": "joint cannot be streamed here",
    "train good.csv --method als --epsilon 1 --set moments=both": "--set moments=both is not known",
    "train good.csv --epsilon 1 --method als --for ratings": "--method and --for each choose a method",
    "train good.csv --epsilon 1 --for both --feedback implicit": "take --for ranking, or --method als",
    "train good.csv --epsilon 1 --for ratings --feedback implicit": "take --for ranking, or --method als",
    "train good.csv --epsilon 1 --for ranking --epochs 3": "--epochs 3 means nothing for ease",
    "train good.csv --epsilon 1 --for ease": "'ease' is not one of 'ranking', 'ratings', 'both'",
    "train good.csv --epsilon 1 --set share=2": "share=2 should be a number from 0.01 to 0.99",
    "train good.csv --epsilon inf --ledger l.json --cap 1": "ledger means nothing with an infinite epsilon",
    "train good.csv --method sgd --items-public": "--items-public is for private methods",
    "train": "Missing argument 'DATA'",
    f"{TRAIN} --set speed=9": "sgd has no setting 'speed'",
    f"{TRAIN} --set speed": "name=value",
    f"{TRAIN} --set learning_rate=-1": "learning_rate=-1",
    f"{TRAIN} --set learning_rate=fast": "learning_rate='fast'",
    f"{TRAIN} --factors 0": "--factors 0",
    f"{TRAIN} --factors many": "'many' is not a valid integer",
    f"{TRAIN} --epochs 0": "--epochs 0",
    f"{TRAIN} --seed -1": "seed=-1",
    f"{TRAIN} --threads 0 --out r": "--threads 0",
    f"{TRAIN} --holdout 2": "--holdout 2 is not a fraction",
    f"{TRAIN} --holdout nan": "--holdout nan is not a fraction",
    f"{TRAIN} --split last --holdout 0.1": "number of ratings per user",
    f"{TRAIN} --split last --holdout inf": "number of ratings per user",
    f"{TRAIN} --split last --holdout nan": "number of ratings per user",
    f"{TRAIN} --split last --holdout 1": "needs a timestamp",
    f"{TRAIN} --out taken": "taken holds other files (thesis.tex)",
    f"{TRAIN} --model taken": "taken holds other files (thesis.tex)",
    f"{TRAIN} --out good.csv": "is not a folder",
    f"{TRAIN} --out good.csv/r": "good.csv",
    f"{TRAIN} --model good.csv/r": "good.csv",
    f"{TRAIN} --speed 9": "--speed",
    f"{TRAIN} --epsilon 1 --out r": "sgd is not private",
    f"{TRAIN} --epsilon nan --out r": "sgd is not private",
    f"{TRAIN} --epsilon=-inf --out r": "sgd is not private",
    f"{TRAIN} --split last": "say how much with --holdout",
    f"{TRAIN} --out r --model r": "choose folders that are apart",
    f"{TRAIN} --out r --model r/model": "choose folders that are apart",
    f"{TRAIN} --model m --checkpoint m/run": "choose folders that are apart",
    f"{TRAIN} --resume": "--resume needs --checkpoint",
    f"{TRAIN} --checkpoint-every 2": "--checkpoint-every needs --checkpoint",
    f"{TRAIN} --checkpoint-every 1": "--checkpoint-every needs --checkpoint",
    f"{TRAIN} --checkpoint-minutes 5": "--checkpoint-minutes needs --checkpoint",
    f"{TRAIN} --seed {'9' * 70}": "seed=999",
    f"{TRAIN} --factors 10000000000000000": "--factors 10000000000000000",
    f"{TRAIN} --set learning_rate=1{'0' * 400}": "learning_rate=1000",
    f"{TRAIN} --columns rating=²": "no column '²'",
    "train synthetic --method sgd --missing 3": "leave out options about files",
    "evaluate {release} {data} --items nowhere.csv": "--items cannot be given here",
    "evaluate nowhere good.csv": "no release at nowhere",
    "evaluate {release} nowhere.csv": "no data at nowhere.csv",
    "evaluate {release} {data} --holdout 2": "--holdout 2 is not a fraction",
    "evaluate {release} {data} -k 0": "k=0",
    "evaluate {release} {data} --threads 0": "--threads 0",
    "evaluate {release} {data} --scale 3:4": "off the scale 3:4",
    "evaluate damaged {data}": "is damaged: it is not JSON",
    "recommend {release}": "--ratings",
    f"{RECOMMEND} nowhere.csv": "no file nowhere.csv",
    f"{RECOMMEND} empty.csv": "empty.csv is empty",
    f"{RECOMMEND} mine_off.csv": "the rating 9.0 of 'The Silent Orbit' is not on the scale 1:5",
    f"{RECOMMEND} mine_nan.csv": "not on the scale",
    f"{RECOMMEND} mine_twice.csv": "rated twice",
    f"{RECOMMEND} mine_words.csv": "rating 1 should be an item and a number",
    f"{RECOMMEND} mine_elsewhere.csv": "none of the rated items is in the catalogue",
    f"{RECOMMEND} file": "Is a directory",
    f"{RECOMMEND} mine.csv -k 0": "k=0",
    f"{RECOMMEND} mine.csv --only Orbit": "did you mean 'The Silent Orbit'",
    "recommend damaged --ratings mine.csv": "is damaged",
    "similar {release} Orbit": "did you mean 'The Silent Orbit'",
    "similar {release} 1 -k 0": "k=0",
    "similar {release}": "Missing argument 'ITEM'",
    "explain nowhere": "no release at nowhere",
    "explain taken": "release.json is missing",
    "explain damaged": "is damaged",
    "demo --threads 0": "--threads 0",
    "demo --out good.csv": "good.csv exists and is not a folder",
    "data describe nowhere.csv": "no data at nowhere.csv",
    "data fetch netflux": "did you mean netflix?",
    "data fetch synthetic --json": "cannot be downloaded",
    "data ingest good.csv taken": "holds other files",
    "data ingest {data} {data}": "holds other files",
    "data ingest {data} {data} --replace": "where the data come from",
    "data ingest nan.csv store": "row 3",
    "data ingest good.csv /": "holds other files",
    "train {data} --method sgd --out {data}/release": "choose folders that are apart",
    "data ingest good.csv . --replace": "holds other files",
    "data destroy": "destroy",
    "dance": "dance",
    "--dance": "--dance",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with good and bad files in it."""
    for name, content in FILES.items():
        path = tmp_path / name
        if name.endswith("/"):
            path.mkdir()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPMF_DATA", str(tmp_path / "file"))
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_leaves_no_trace(
    command: Command, here: Path, data_folder: Path, release_folder: Path, line: str
) -> None:
    before = contents(here)
    done = command(*(word.format(release=release_folder, data=data_folder) for word in line.split()))
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("dpmf: ")
    assert done.stderr.count("\n") == 1
    assert BAD[line] in done.stderr
    assert done.stdout == ""
    assert contents(here) == before


@pytest.mark.parametrize("words", ["--out taken", "--model taken", "--model below", "--threads 0"])
def test_what_could_not_be_saved_is_refused_before_the_work(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    (here / "below" / "release").mkdir(parents=True)
    (here / "below" / "release" / "notes.txt").write_text("mine")
    monkeypatch.setattr("dpmf.ratings.Ratings.read", lambda *_, **__: pytest.fail("the ratings were read"))
    assert command(*TRAIN.split(), *words.split()).returncode == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device: free some space"),
        (PermissionError(errno.EACCES, "Permission denied", "out"), "Permission denied (out)"),
        (MemoryError(), "out of memory"),
        (ImportError("failed to map segment"), "a library cannot be loaded, for lack of memory"),
    ],
)
def test_trouble_with_the_machine_is_one_line(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Release, "save", fail)
    done = command("train", "good.csv", "--method", "sgd", "--epochs", 1, "--out", "r")
    assert done.returncode == 1
    assert done.stderr.startswith(f"dpmf: {message}")
    assert done.stderr.count("\n") == 1
    assert not (here / "r").exists()
