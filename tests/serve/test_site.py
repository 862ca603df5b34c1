"""The files of a site: complete, self-contained, true to the release, and only for releases that are certified."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dpmf.errors import DamagedFile, InvalidArgument, NotCertified, NotVerified
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.catalogue_file import catalogue_beside
from dpmf.files import digest_of
from dpmf.methods import GaussianGD
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.serve.about import about_release
from dpmf.serve.assets import fingerprinted_page, join_files, page_files
from dpmf.serve.server import ServerSettings
from dpmf.serve.service import build
from dpmf.serve.site import (
    CONTENT_SECURITY_POLICY,
    CONTENT_TYPES,
    SECURITY_HEADERS,
    export_site,
    joining_policy,
    site_files,
)

from .joining_world import Offered, offered
from .samples import random_release

Command = Callable[..., subprocess.CompletedProcess[str]]

EVENT = GaussianEvent("item sums", 5.0, 1, 40)
CERTIFIED = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], assumptions=["Nobody peeks."])
SEEDED = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], seeded=True)
PAPER = Guarantee.paper(
    epsilon=1, delta=0, unit="user", neighbours="add-remove", claim="a theorem", releases=["item factors"],
    assumptions=["The chain has converged."],
)  # fmt: skip


@pytest.fixture
def folder(release: Release, tmp_path: Path) -> Path:
    """Return a folder with a certified release."""
    replace(release, guarantee=CERTIFIED).save(tmp_path / "release")
    return tmp_path / "release"


def test_a_site_is_the_page_and_the_release_as_it_is(folder: Path) -> None:
    files = site_files(folder)
    about = json.loads(files["about.json"])
    for name in ("release.json", "release.safetensors"):
        content = (folder / name).read_bytes()
        assert files[about["paths"][f"release/{name}"]] == content
        assert about["sha256"][f"release/{name}"] == hashlib.sha256(content).hexdigest()
    assert set(about["paths"]) == {*page_files(), "release/release.json", "release/release.safetensors"}
    assert set(files) == {*about["paths"].values(), "about.json"}
    assert about["files"] == sorted(files)
    assert {Path(name).suffix for name in files} == set(CONTENT_TYPES)


def test_everything_the_page_refers_to_is_there(folder: Path) -> None:
    files = site_files(folder)
    paths = json.loads(files["about.json"])["paths"]
    referred = {"index.html", "about.json", paths["release/release.json"], paths["release/release.safetensors"]}
    for name, content in files.items():
        text = content.decode() if name.endswith((".html", ".js")) else ""
        here = Path(name).parent
        for found in re.findall(r'(?:src|href)="([^"#][^":]*)"|from "(\.[^"]+)"|new URL\("([^"]+)"', text):
            referred.add(posixpath.normpath((here / next(filter(None, found))).as_posix()))
    assert referred == set(files)


def test_another_release_shares_the_page_and_nothing_else(folder: Path, release: Release, tmp_path: Path) -> None:
    replace(release, guarantee=CERTIFIED, mean=3.0, item_biases=release.item_biases - 1).save(tmp_path / "other")
    one, other = site_files(folder), site_files(tmp_path / "other")
    page = set(fingerprinted_page().files)
    assert set(one) & set(other) == {*page, "about.json"}
    assert all(one[path] == other[path] for path in page)
    assert one["about.json"] != other["about.json"]


def test_there_is_no_address_of_anywhere_else(folder: Path) -> None:
    for name, content in site_files(folder).items():
        assert not re.search(rb"https?://|wss?://|[\"'`(]//", content, re.IGNORECASE), name


def test_nothing_is_inline_and_nothing_is_read_as_markup() -> None:
    page = page_files()["index.html"].decode()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|javascript:", page)
    for name, content in page_files().items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\(|document\.cookie|sendBeacon"
            r"|XMLHttpRequest|WebSocket|EventSource",
            content.decode(),
        ), name
    assert [name for name, content in page_files().items() if b"fetch(" in content] == [
        "js/load.js", "js/offline.js", "sw.js"
    ]  # fmt: skip


def test_the_policy_of_the_page_is_the_one_for_headers() -> None:
    page = page_files()["index.html"].decode()
    assert f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">' in page
    assert page.index("Content-Security-Policy") < page.index("<link")
    rules = dict(rule.strip().split(" ", 1) for rule in CONTENT_SECURITY_POLICY.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["connect-src"] == rules["script-src"] == rules["style-src"] == "'self'"
    assert SECURITY_HEADERS["Content-Security-Policy"].startswith(CONTENT_SECURITY_POLICY)


def test_about_holds_the_guarantee_as_data_and_in_words(release: Release) -> None:
    about = about_release(replace(release, guarantee=CERTIFIED))
    assert (about["certified"], about["mode"], about["unit"], about["delta"]) == (True, "certified", "user", 1e-6)
    assert about["epsilon"] == CERTIFIED.epsilon
    assert about["assumptions"] == ["Nobody peeks."]
    assert 0.5 < about["guess"]["exact"] <= about["guess"]["promised"] < 0.8
    titles = [section["title"] for section in about["sections"]]
    assert titles[0] == "What is released"
    assert "What is not protected" in titles


@pytest.mark.parametrize("guarantee", [Guarantee.none(), PAPER, SEEDED], ids=["none", "paper", "seeded"])
def test_what_is_not_certified_is_refused_unless_accepted(
    release: Release, guarantee: Guarantee, tmp_path: Path
) -> None:
    replace(release, guarantee=guarantee).save(tmp_path / "release")
    with pytest.raises(NotCertified, match="accept_unproven=True"):
        site_files(tmp_path / "release")
    about = json.loads(site_files(tmp_path / "release", accept_unproven=True)["about.json"])
    assert (about["certified"], about["guess"]) == (False, None)


def test_a_release_that_lies_is_refused_even_then(folder: Path) -> None:
    facts = json.loads((folder / "release.json").read_text())
    facts["guarantee"]["epsilon"] = 0.5
    facts["digest"] = digest_of({name: facts[name] for name in facts if name != "digest"})
    (folder / "release.json").write_text(json.dumps(facts))
    with pytest.raises(NotVerified, match=r"epsilon=0\.5 is stated"):
        site_files(folder, accept_unproven=True)


def test_an_older_site_is_replaced_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    export_site(folder, out)
    about = json.loads((out / "about.json").read_text())
    (out / "js" / "gone.js").write_text("// of an older page")
    with pytest.raises(InvalidArgument, match=r"holds other files \(js/gone\.js\)"):
        export_site(folder, out)
    (out / "about.json").write_text(json.dumps({**about, "files": [*about["files"], "js/gone.js"]}))
    files = export_site(folder, out)
    assert {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()} == files
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidArgument, match="thesis"):
        export_site(folder, out)
    assert (out / "thesis.tex").exists()


@pytest.mark.parametrize("has_digests", [True, False])
def test_another_release_replaces_a_site_with_or_without_digests(
    folder: Path, release: Release, tmp_path: Path, has_digests: bool
) -> None:
    out = tmp_path / "site"
    export_site(folder, out)
    if not has_digests:  # as earlier versions of dpmf wrote it
        about = json.loads((out / "about.json").read_text())
        paths = about.pop("paths")
        for name, path in paths.items():
            (out / path).rename(out / name)
        (out / "about.json").write_text(json.dumps({**about, "files": sorted([*paths, "about.json"])}))
    replace(release, guarantee=CERTIFIED, mean=3.0).save(tmp_path / "other")
    files = export_site(tmp_path / "other", out)
    assert {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()} == files


def test_a_damaged_release_makes_no_site(folder: Path, tmp_path: Path) -> None:
    with (folder / "release.safetensors").open("r+b") as file:
        file.seek(100)
        file.write(b"x")
    with pytest.raises(DamagedFile):
        export_site(folder, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_the_command_says_what_it_wrote(command: Command, folder: Path, tmp_path: Path) -> None:
    done = command("export-site", folder, tmp_path / "site", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["certified"], report["items"], report["out"]) == (True, 6, str(tmp_path / "site"))
    assert report["bytes"] == sum(path.stat().st_size for path in (tmp_path / "site").rglob("*") if path.is_file())
    assert "http.server" in command("export-site", folder, tmp_path / "site").stdout


def test_the_command_refuses_in_one_line(command: Command, release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    done = command("export-site", tmp_path / "release", tmp_path / "site")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "is not certified (mode none)" in done.stderr
    assert not (tmp_path / "site").exists()
    assert command("export-site", tmp_path / "release", tmp_path / "site", "--accept-unproven").returncode == 0
    assert "no release at" in command("export-site", tmp_path / "nowhere", tmp_path / "site").stderr


def test_a_site_does_not_lie_in_its_release(tmp_path: Path) -> None:
    random_release().save(tmp_path / "release")
    with pytest.raises(InvalidArgument, match="lies in the release"):
        export_site(tmp_path / "release", tmp_path / "release" / "site")


def test_a_list_that_names_other_files_does_not_make_them_ours(tmp_path: Path) -> None:
    random_release().save(tmp_path / "release")
    site = tmp_path / "site"
    export_site(tmp_path / "release", site)
    about = json.loads((site / "about.json").read_text())
    (site / "about.json").write_text(json.dumps({**about, "files": [*about["files"], "precious.txt"]}))
    (site / "precious.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match="precious"):
        export_site(tmp_path / "release", site)
    assert (site / "precious.txt").exists()


@pytest.fixture
def agreement(tmp_path: Path) -> tuple[Offered, Path]:
    """Return an agreement that both servers signed, and its file, beside which is its catalogue."""
    offer, path = offered("als-biases", items=random_release().items), tmp_path / "agreement.json"
    offer.file.write(path)
    catalogue_beside(path).write_bytes(offer.catalogue)
    random_release().save(tmp_path / "release")
    return offer, path


def test_a_site_offers_an_agreement_only_if_it_is_told_to(agreement: tuple[Offered, Path], tmp_path: Path) -> None:
    offer, path = agreement
    plain, offering = site_files(tmp_path / "release"), site_files(tmp_path / "release", agreement=path)
    assert set(plain) < set(offering)
    assert all(offering[name] == content for name, content in plain.items() if name != "about.json")
    assert not any(name.startswith("join") or "federated" in name for name in plain)
    assert "joining" not in json.loads(plain["about.json"])
    about = json.loads(offering["about.json"])
    assert about["joining"] == {"name": "Films of a club", "servers": ["The club", "The library"]}
    assert offering[about["paths"]["join/agreement.json"]] == path.read_bytes()
    assert offering[about["paths"]["join/catalogue.json"]] == offer.catalogue
    page = offering["join.html"].decode()
    policy = joining_policy([server.url for server in offer.file.servers.values()])
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page
    assert "connect-src 'self' wss://recommender.example:8443 wss://third.example:8444;" in policy
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|javascript:", page)


def test_of_the_modules_for_joining_one_opens_connections_and_one_fetches() -> None:
    sources = join_files()
    assert [name for name, content in sources.items() if b"new WebSocket" in content] == ["js/federated/session.js"]
    assert [name for name, content in sources.items() if b" fetch(" in content] == ["js/joining/files.js"]
    banned = rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\(|sendBeacon|XMLHttpRequest"
    assert not [name for name, content in sources.items() if re.search(banned, content)]


def test_the_service_sends_the_page_for_joining_with_a_policy_of_its_own(
    agreement: tuple[Offered, Path], tmp_path: Path
) -> None:
    settings = ServerSettings(str(tmp_path / "release"))
    service = build(tmp_path / "release", recommends=False, check=settings.check, agreement=agreement[1])
    with TestClient(service) as client:
        policies = [client.get(f"/{path}").headers.get_list("content-security-policy") for path in ("", "join.html")]
    assert policies[0] == [SECURITY_HEADERS["Content-Security-Policy"]]
    addresses = "wss://recommender.example:8443 wss://third.example:8444"
    assert policies[1] == [policies[0][0].replace("connect-src 'self'", f"connect-src 'self' {addresses}")]


def test_a_site_with_an_offer_is_exported_and_replaced(agreement: tuple[Offered, Path], tmp_path: Path) -> None:
    out = tmp_path / "site"
    assert "join.html" in export_site(tmp_path / "release", out, agreement=agreement[1])
    export_site(tmp_path / "release", out)
    assert not (out / "join.html").exists()


def test_agreements_that_a_page_cannot_join_are_not_offered(tmp_path: Path) -> None:
    random_release().save(tmp_path / "release")
    items = random_release().items
    unsigned = offered("als-biases", items=items).file
    cases = {
        "did not sign": AgreementFile(unsigned.text, {}),
        "version 1 of the wire": offered("als-biases", items=items, wire=1).file,
        "cannot answer what": offered(GaussianGD(n_factors=1, n_epochs=1, budget=Budget(5.0)), items=items).file,
        "the catalogue of": offered("als-biases", n_items=7).file,
    }
    for words, file in cases.items():
        file.write(tmp_path / "agreement.json")
        with pytest.raises((InvalidArgument, NotVerified), match=words):
            site_files(tmp_path / "release", agreement=tmp_path / "agreement.json")
    with pytest.raises(InvalidArgument, match="cannot read the agreement"):
        site_files(tmp_path / "release", agreement=tmp_path / "nothing.json")
