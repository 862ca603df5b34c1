"""`dpmf train --dry-run`: what a run would cost and could find."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.cli.output import print_json, print_table, say
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.methods import Method
    from dpmf.privacy import Guarantee
    from dpmf.ratings.options import ReadOptions
    from dpmf.runs.estimate import Estimate

_RESTS_ON = (
    "No rating was read, nothing was entered in a ledger, and nothing was released.",
    "Memory and time are rough estimates, from the sizes above and from other data on two threads of another machine.",
)
_FROM_FILE = (
    "The number of ratings follows from the size of the file, and memory and time from that: they are for the holder "
    "of the data, as no noise hides them."
)
_ELSEWHERE = (
    "Other data may be worse for the same epsilon times people: on Book-Crossing at epsilon 20, als lost 0.02 to the "
    "per-user mean. Try it on public ratings similar to yours."
)


def run_dry(
    data: str,
    method: Method,
    read: ReadOptions,
    *,
    n_threads: int,
    ledger_file: Path | None,
    as_json: bool,
) -> None:
    """Print what to expect of a run: of options, the list of items, what is declared beside DATA, and its size."""
    from dpmf.methods.als.implicit import NO_RATINGS
    from dpmf.ratings.location import locate
    from dpmf.runs.estimate import estimate

    location = locate(data, read)
    catalogue, scale, users = location.read_items(), location.options.scale, location.options.users_about
    if catalogue is None:
        raise InvalidArgument("--dry-run reads no ratings, so it needs a list of items: name its file with --items")
    if scale is None and not method.is_implicit:
        raise InvalidArgument("--dry-run reads no ratings, so it needs their scale: say it with --scale, such as 1:5")
    if "n_users" in {field.name for field in fields(method)}:
        users = method.facts()["n_users"] or users
        method = replace(method, n_users=users)  # type: ignore[call-arg]
    sizes = location.sizes() if location.paths else None
    n_ratings = 0 if sizes is None else sizes.ratings
    scale = scale or NO_RATINGS
    found = estimate(method, catalogue, scale, n_users=users, n_ratings=n_ratings, n_threads=n_threads)
    ledger = None if ledger_file is None else _ledger(ledger_file, found.guarantee)
    if as_json:
        print_json({"method": method.name, **found.to_json(), "ledger": ledger})
    else:
        _print(found, method, ledger, from_file=bool(n_ratings))


def _ledger(path: Path, guarantee: Guarantee) -> dict[str, Any] | None:
    """Return what a ledger would say; None if there is none yet, and none is made."""
    from dpmf.privacy.ledger import Ledger

    if not path.exists():
        return None
    ledger = Ledger(path)
    total = ledger.total_with(guarantee)
    return {"spent": ledger.spent(), "total": total, "cap": ledger.cap.epsilon, "fits": total <= ledger.cap.epsilon}


def _print(found: Estimate, method: Method, ledger: dict[str, Any] | None, *, from_file: bool) -> None:
    users = "an unknown number of" if found.users is None else f"about {found.users:,}"
    source = "by the size of the file" if from_file else "if people have 100 each"
    sizes = f"{found.items:,} items, {users} users and {found.ratings:,} ratings ({source})"
    say(f"A dry run of {method.name}: {sizes}")
    say(f"Guarantee: {found.guarantee}", "bold")
    rows = [(what, f"{noise:.4g}", f"{numbers:,}") for what, noise, numbers in found.releases]
    print_table("What would be released", ("", "noise, in contributions", "numbers, at most"), rows)
    if ledger is not None:
        fits = "which fits" if ledger["fits"] else "which does not fit: the run would be refused"
        spent, total, cap = (ledger[name] for name in ("spent", "total", "cap"))
        say(f"Ledger: epsilon {spent:g} is spent, and {total:g} with this, {fits} (its cap is {cap:g})")
    low, high = found.seconds
    say(f"Memory: about {found.memory / 1e6:,.0f} MB at most. Time: about {low:.0f} to {high:.0f} s")
    if found.popular_from is not None:
        enough = f"{found.popular_from:,.0f} people with 25 items each"
        say(f"Popularity: an item stands out from the noise if about {enough} have it")
    if found.users is None:
        say(
            "What it could learn depends on the number of people: if that is public, declare it with --users-about",
            "yellow",
        )
    else:
        _print_learnt(found)
    for line in (*_RESTS_ON, *([_FROM_FILE] if from_file else [])):
        say(line, "dim")


def _print_learnt(found: Estimate) -> None:
    parts = [f"{found.factors} factors" if found.factors else ""]
    parts.append(f"pairs of the {found.head:,} most popular items" if found.head else "")
    parts.append(f"{found.linked:,} pairs of titles that belong together" if found.linked else "")
    parts.append(f"up to {found.factors_from_pairs} factors in these pairs" if found.factors_from_pairs else "")
    looked = ", ".join(filter(None, parts)) or "no factors"
    say(f"It would look for {looked}" + ("; too few people for pairs of items" if found.head == 0 else ""))
    if found.rmse_of_baseline is None:
        return
    low, high = found.rmse_of_baseline
    say(
        f"rmse: {low:.2f} to {high:.2f} of that of the per-user mean, as measured for als with 1/5 to 5 times this "
        f"epsilon times people (the nearest: {', '.join(found.references)})"
    )
    say(_ELSEWHERE)
