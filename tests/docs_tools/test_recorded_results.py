"""Figures that stand on several pages come from recorded rows."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from docs_tools.results import RESULTS, ROOT, Table, pages, read_rows, read_tables, refreshed

ROWS: dict[str, dict[str, Any]] = {
    "als/few/1": {"figures": {"rmse": 0.91234}},
    "als/few/5": {"figures": {"rmse": 0.9, "people": 1200}, "note": "of an older version"},
    "sgd/few": {"figures": {"rmse": 0.8}},
}
TABLES = {"errors": Table("rmse", [("ε = 1", "{1:rmse:.3f}"), ("ε = 5", "{5:rmse:.3f}")], [("*few*", "als/few", {})])}


@pytest.fixture(scope="module")
def recorder() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "record.py"))


def test_pages_show_what_is_recorded() -> None:
    rows, tables = read_rows(RESULTS), read_tables(RESULTS / "tables.toml")
    shown = {page: page.read_text(encoding="utf-8") for page in pages()}
    stale = [page.name for page, text in shown.items() if refreshed(text, tables, rows) != text]
    assert not stale, "run `python -m docs_tools.results`"
    unused = [name for name in tables if not any(f"<!-- begin: results {name} -->" in text for text in shown.values())]
    assert not unused


def test_every_row_says_where_it_is_from() -> None:
    rows = read_rows(RESULTS).values()
    assert rows
    for row in rows:
        assert set(row) - {"note"} == {"name", "epsilon", "figures", "runs", "command", "machine", "versions", "source"}
        assert row["command"].startswith(("python benchmarks/", "dpmf "))
        assert row["figures"]


def test_a_block_has_the_table_and_its_notes_and_stays_as_it_is() -> None:
    page = "so\n\n<!-- begin: results errors -->\nold\n<!-- end: results errors -->\nit is\n"
    once = refreshed(page, TABLES, ROWS)
    assert "| *few* | 0.912 | 0.900¹ |\n\n¹ Of an older version.\n\n<!-- end" in once
    assert refreshed(once, TABLES, ROWS) == once
    assert once.startswith("so\n")
    assert once.endswith("-->\nit is\n")


def test_every_note_has_a_mark_of_its_own_and_none_is_about_baselines() -> None:
    figures = {"rmse": 0.9, "baseline_rmse": 1.0}
    noted = {key: {"figures": figures, "note": key} for key in ("als/a/1", "als/b/1")}
    columns = [("rmse", "{1:rmse:.1f}"), ("mean", "{1:baseline_rmse:.1f}")]
    shown = Table("", columns, [("a", "als/a", {}), ("b", "als/b", {})]).markdown(noted)
    assert shown.endswith("| a | 0.9¹ | 1.0 |\n| b | 0.9² | 1.0 |\n\n¹ Als/a/1.  \n² Als/b/1.")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("so <!-- als/few/2:rmse:.3f --><!-- end -->", "no rmse of als/few/2"),
        ("so <!-- als/few/1:mae:.3f --><!-- end -->", "no mae of als/few/1"),
        ("<!-- begin: results none -->\n<!-- end: results none -->", "no table none"),
    ],
)
def test_what_is_not_recorded_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(KeyError, match=wrong):
        refreshed(text, TABLES, ROWS)


def test_a_row_may_say_what_a_column_shows() -> None:
    table = Table(
        "",
        [("ε = 5", "{5:value:,}")],
        [("error", "als/few", {"value": "rmse"}), ("of", "als/few", {"value": "people"})],
    )
    assert "| error | 0.9¹ |\n| of | 1,200¹ |" in table.markdown(ROWS)


def test_a_comment_that_would_end_a_paragraph_is_refused() -> None:
    with pytest.raises(ValueError, match="begins a line"):
        refreshed("so\n<!-- als/few/1:rmse:.3f --><!-- end -->", TABLES, ROWS)


def test_a_row_without_figures_is_refused() -> None:
    table = Table("rmse", [("ε = 1", "{1:rmse:.3f}")], [("many", "als/many", {})])
    with pytest.raises(KeyError, match="no figures of als/many"):
        table.markdown(ROWS)


def test_recording_replaces_rows_of_the_same_name_and_epsilon(recorder: dict[str, Any], tmp_path: Path) -> None:
    record = recorder["record"]
    record("als", "few", {"1": {"rmse": 0.9, "mae": None}, "inf": {"rmse": 0.8}}, folder=tmp_path, command="dpmf x")
    record("als", "few", {"1": {"rmse": 0.7654321}}, runs=3, note="new", folder=tmp_path, command="dpmf y")
    assert len((tmp_path / "als.jsonl").read_text().splitlines()) == 2
    rows = read_rows(tmp_path)
    assert list(rows) == ["als/few/inf", "als/few/1"]
    assert rows["als/few/1"]["figures"] == {"rmse": 0.765432}
    assert (rows["als/few/1"]["runs"], rows["als/few/1"]["note"]) == (3, "new")
    assert rows["als/few/inf"]["figures"] == {"rmse": 0.8}
    assert {"numba", "numpy"} <= set(rows["als/few/inf"]["versions"])
    assert "CPUs" in rows["als/few/inf"]["machine"]


def test_rows_name_no_folder_of_the_machine(recorder: dict[str, Any]) -> None:
    typed = recorder["as_typed"](["/repo/benchmarks/private.py", "/data/ml-1m", "--record", "--seed", "3"])
    assert typed == "python benchmarks/private.py …/ml-1m --seed 3"
    for path in RESULTS.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert " /" not in json.loads(line)["command"]
