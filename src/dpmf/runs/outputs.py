"""Where the results of a run go, checked before the work and not after it.

>>> check_apart({"release": Path("out"), "model": Path("out/model")})
Traceback (most recent call last):
    ...
dpmf.errors.InvalidArgument: the model ...out/model lies in the release ...out: choose folders that are apart
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.model import Model


@dataclass(frozen=True)
class Outputs:
    """What to save of a run.

    Attributes:
        out: the folder for the release.
        model: the folder for the whole model, which is sensitive.
        sign_key: a private key to sign the release with.
    """

    out: Path | None = None
    model: Path | None = None
    sign_key: Path | None = None

    def check(self) -> None:
        """Refuse folders that hold something else, and a key that cannot be used."""
        from dpmf.files import check_replaceable
        from dpmf.model import model as model_files
        from dpmf.model import release_json as release_files
        from dpmf.model.signing import read_private_key

        if self.sign_key is not None:
            if self.out is None:
                raise InvalidArgument("a key signs the release that is saved: name the folder to save it in, too")
            read_private_key(self.sign_key)
        if self.out is not None:
            check_replaceable(self.out, release_files.FILES)
        if self.model is not None:
            check_replaceable(self.model, model_files.FILES)
            check_replaceable(self.model / "release", release_files.FILES)

    def save(self, model: Model) -> None:
        """Save what was asked for."""
        if self.out is not None:
            model.release.save(self.out, self.sign_key)
        if self.model is not None:
            model.save(self.model)


def check_apart(folders: Mapping[str, Path | None]) -> None:
    """Refuse folders that are the same or inside each other: what is sensitive must not lie in what is published.

    Args:
        folders: by what they hold.
    """
    given = [(name, folder.resolve()) for name, folder in folders.items() if folder is not None]
    for name, folder in given:
        for other, outer in given:
            if name != other and folder.is_relative_to(outer):
                raise InvalidArgument(f"the {name} {folder} lies in the {other} {outer}: choose folders that are apart")
