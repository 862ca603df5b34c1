"""Servers of a federation that are killed at random moments, by SIGKILL, and started again.

    python benchmarks/federation_faults.py [--kills 50] [--runs 5] [--people 30] [--items 300] [--factors 4]
        [--rounds 24] [--folder DIR] [--seed 1]

Each run is a deployment on loopback TLS, two servers and everybody's clients in processes of their own, in which nobody
may be missing. A quarter of the kills come at any time after the last one, while people may still be connecting; the
others just after a round was opened. At the end of each run is checked, or the program fails:

- the run ended, and its release verifies; or a sum of the first stage was lost, and everybody heard that it failed;
- factors and biases are, bit for bit, those of `simulate_certified` with the same noise, in which the rounds that the
  recommender logged as discarded are discarded: so every sum was right, and no noise was drawn twice;
- everybody answered each round once at most, by their devices' count and by their ledgers;
- the third party closed each round once at most.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from federation import ROLES, Deployment, start_crowd

_NOISE = 7  # with noise from a seed there is no guarantee, and something to compare with


def one_run(asked: argparse.Namespace, seed: int, kills: int) -> Counter[str]:
    """Carry out a run in which servers are killed so often, check it, and return what happened."""
    folder = Path(tempfile.mkdtemp(prefix="dpmf-federation-", dir=asked.folder))
    asked = argparse.Namespace(**{**vars(asked), "seed": seed})
    try:
        deployment = Deployment(folder, asked)
        deployment.agree()
        for role in reversed(ROLES):
            deployment.start(role)
        crowd = start_crowd(deployment, noise_seed=_NOISE)
        happened = _kill_while(deployment, crowd, random.Random(seed), kills)
        report = json.loads(crowd.communicate()[0] or b"{}")
        deployment.stop()
        return happened + _checked(deployment, report)
    except BaseException:
        for role in ROLES:
            print(f"{role}:", *(folder / f"{role}.log").read_text().splitlines()[-20:], sep="\n  ", flush=True)
        raise
    finally:
        for process in deployment.processes.values():
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _kill_while(
    deployment: Deployment, crowd: subprocess.Popen[bytes], chance: random.Random, kills: int
) -> Counter[str]:
    """Kill servers at random moments until it has been done often enough, or the run is over."""
    happened: Counter[str] = Counter()
    while crowd.poll() is None and happened["kills"] < kills:
        if chance.random() < 0.25:
            time.sleep(chance.uniform(0, 10))
        else:
            _wait_for_rounds(deployment, crowd, chance.randrange(1, 5))
            time.sleep(chance.uniform(0, 0.2))
        role = chance.choice(ROLES)
        if crowd.poll() is not None or any(one.poll() is not None for one in deployment.processes.values()):
            break
        asking = deployment.events("recommender")
        last = next((one for one in reversed(asking) if one["event"].startswith("round ")), None)
        is_open = last is not None and last["event"] == "round opened"
        first = not any(one["event"] == "round closed" for one in asking)
        deployment.kill(role)
        happened.update(["kills", f"kills of the {role}", *["kills in an open round"] * is_open])
        happened.update(["kills before the first sum"] * first)
    crowd.wait(1800)
    return happened


def _wait_for_rounds(deployment: Deployment, crowd: subprocess.Popen[bytes], count: int) -> None:
    """Wait until so many more rounds are opened."""
    log = deployment.folder / "recommender.log"
    before = log.read_text().count("round opened")
    while crowd.poll() is None and log.read_text().count("round opened") < before + count:
        time.sleep(0.01)


def _checked(deployment: Deployment, crowd: dict[str, Any]) -> Counter[str]:
    """Check what a run came to, and return what is worth counting."""
    from dpmf import Release
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.methods.verification import verify_release
    from dpmf.privacy.ledger import Ledger

    people, asking = deployment.asked.people, deployment.events("recommender")
    agreement = AgreementFile.read(deployment.agreement)
    computed = agreement.content["computed"]["rounds"]
    rounds = len(computed)
    discarded = {one["round"] for one in asking if one["event"] == "round discarded"}
    ended = [one for one in deployment.events("third-party") if one["event"] == "round closed"]
    summed = [one["round"] for one in ended]
    assert len(summed) == len(set(summed)), "the third party closed a round twice"
    for own in sorted((deployment.folder / "ledgers").iterdir()):
        (entry,) = Ledger(own / "ledger.json").entries()
        assert entry.started <= rounds
    assert crowd["answered"] <= people * rounds
    counts = Counter({"rounds": len(summed), "discarded": len(discarded), "answers": crowd["answered"]})
    counts["sums that left in vain"] = len(discarded & {one["round"] for one in ended if one["enough"]})
    counts["given again"] = crowd["said_again"]
    if any(computed[number]["stage"] == 0 for number in discarded):  # nothing can be learnt without it
        assert crowd["outcomes"] == {"failed": people}, crowd
        return counts + Counter({"runs that ended in the first stage": 1})
    assert crowd["outcomes"] == {"finished": people}, crowd
    release = Release.load(deployment.folder / "recommender state" / "release")
    assert verify_release(release).ok
    expected = _simulated(deployment, discarded)
    assert np.array_equal(release.item_factors, expected.item_factors), "a sum was wrong, or noise was drawn twice"
    assert np.array_equal(release.item_biases, expected.item_biases), "a sum was wrong, or noise was drawn twice"
    return counts + Counter({"releases compared": 1})


def _simulated(deployment: Deployment, discarded: set[int]) -> Any:
    """Return the release of the same run in one process, where the same rounds come to nothing."""
    from dpmf import ALS, Budget
    from dpmf.federated.certified import CertifiedScenario, simulate_certified
    from dpmf.federated.certified.simulation import Parties
    from dpmf.federated.deploy.agreement_file import AgreementFile
    from dpmf.federated.deploy.crowd import CrowdSettings, crowd_ratings
    from dpmf.methods.certified.conversation import StageLost

    folder, asked = deployment.folder, deployment.asked
    settings = CrowdSettings(deployment.agreement, folder, folder, folder, asked.people, seed=asked.seed)
    ratings = crowd_ratings(settings, asked.items)
    about = AgreementFile.read(deployment.agreement).content
    budget = Budget(about["budget"]["epsilon"], about["budget"]["delta"])
    method = ALS(n_factors=asked.factors, n_epochs=asked.rounds, budget=budget, noise_seed=_NOISE)
    scenario = CertifiedScenario(budget, method=method, noise_seed=_NOISE, dropouts=0.0, colluders=0.0)
    ask = Parties.ask

    def asks(self: Parties, questions: Any) -> Any:
        number = self.recommender.round
        answers = ask(self, questions)
        if number in discarded:
            raise StageLost("discarded")
        return answers

    with patch.object(Parties, "ask", asks):
        return simulate_certified(ratings, scenario, n_threads=1).model.release


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {"kills": 50, "runs": 5, "people": 30, "items": 300, "factors": 4, "rounds": 24, "seed": 1}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    fixed: dict[str, Any] = {
        "epsilon": 5.0, "leave": 0.0, "away": 5.0, "tolerate": 0.0, "method": "als", "head": 0, "processes": 1,
        "round_seconds": 120.0, "misbehaving": 0,
    }  # fmt: skip
    asked = argparse.Namespace(**vars(asked), **fixed)
    total: Counter[str] = Counter()
    for seed in range(asked.seed, asked.seed + 10 * asked.runs):
        left = asked.kills - total["kills"]
        if left <= 0:
            break
        found = one_run(asked, seed, min(left, -(-asked.kills // asked.runs)))
        total += found + Counter(runs=1)
        print(f"seed {seed}: {dict(found)}", flush=True)
    print(f"{vars(asked)}\ntogether: {dict(total)}; all releases as without a kill, but for discarded rounds")


if __name__ == "__main__":
    main()
