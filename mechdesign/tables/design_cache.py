"""DesignCache: optimal mechanisms kept on disk, one file for each exact request."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from mechdesign.base import to_text
from mechdesign.exceptions import MechanismError
from mechdesign.losses import L0, Loss
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism import files
from mechdesign.mechanism.closed_form import SMALL, FairLaw, GeometricLaw, Law, UniformLaw
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.table import IndexTable
from mechdesign.mechanism.values import Values
from mechdesign.optimisation.certificate import Certificate
from mechdesign.optimisation.optimal import checked, design, expected_seconds, refuse_huge
from mechdesign.optimisation.theory import LARGEST_GROUP, closed_form
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, Property, PropertyLike

#: Asks for mechanisms whose unbiased estimate has a small variance, instead of for a loss.
TOTAL: Final = "total"

_PATIENCE = 60  # seconds that the design of one size may take; beyond, a closed form is taken

FOLDER = "MECHDESIGN_CACHE"  #: The environment variable that names the folder of the cache.


class DesignCache:
    """Designs in a folder, from which any number of processes may read while others write.

    A file is found by a digest of what was asked for: n, the exact privacy, the costs, and the
    constraints of the properties. It is not trusted: its digest, its table, its privacy and its
    properties are checked whenever it is read, exactly. What fails is designed anew and replaced.
    A folder that cannot be written only costs time.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        Where the files are; created when the first is written. None: what the environment variable
        ``MECHDESIGN_CACHE`` says, or else the usual place of the system. A `Path` as an attribute.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = _default_folder() if folder is None else Path(folder)

    def mechanism(
        self,
        n: int,
        privacy: Privacy,
        loss: Loss | Literal["total"] | None = None,
        properties: Iterable[PropertyLike] = (),
        *,
        prior: Sequence[Fraction] | None = None,
        certificate: bool = False,
    ) -> Mechanism:
        """Return the mechanism of `design`, from its file if there is one; its privacy is audited.

        Parameters
        ----------
        n : int
            The largest count.
        privacy : Privacy
            As for `design`, but its neighbours are "adjacent", "all" or a distance.
        loss : Loss or "total", optional
            As for `design`; "total": that of
            `mechdesign.optimisation.unbiased_design.least_variance`.
        properties : iterable of Property, type or str, optional
            As for `design`.
        prior : sequence of Fraction, optional
            Of "total": the weights of the counts, shape (n + 1,), of sum 1; uniform unless given.
            Losses have their own.
        certificate : bool, default False
            Whether the mechanism has its certificate, and that of a file is checked again. It is
            not needed for privacy, and takes longer.

        Returns
        -------
        Mechanism

        Raises
        ------
        ValueError
            The arguments are not what `design` accepts, or neighbours are pairs or a `Metric`.
        Infeasible, TooLarge, SolverFailure
            As `design`.
        """
        inputs, plain, wanted = checked(n, None if loss == TOTAL else loss, properties)
        sought: Loss | Literal["total"] = TOTAL if loss == TOTAL else plain
        if not isinstance(privacy.neighbours, (str, int)):
            raise ValueError(
                "designs are kept for neighbours that are 'adjacent', 'all' or a distance, which"
                " fit groups of any size"
            )
        known = best_closed_form(inputs.size - 1, privacy, sought, wanted)
        if known is not None and (known.certificate is not None or not certificate):
            return known if certificate else Mechanism.from_parts(known, None)
        smaller = "smaller groups of public size, or a smaller cap, take less"
        refuse_huge(inputs.size, inputs.size, privacy, remedy=smaller)
        path = self.folder / f"{_key(inputs, privacy, sought, wanted, prior)}.json"
        mechanism = _read(path, inputs, privacy, sought, wanted, certificate)
        if mechanism is None:
            mechanism = _solved(n, privacy, sought, wanted, prior)
            # Without the file, which may also be too long to be read again, only time is lost.
            with suppress(OSError, ValueError):
                path.parent.mkdir(parents=True, exist_ok=True)
                mechanism.save(path)
        return mechanism if certificate else Mechanism.from_parts(mechanism, None)


def designed(
    n: int,
    privacy: Privacy,
    loss: Loss | Literal["total"] | None,
    properties: Iterable[PropertyLike],
    *,
    prior: Sequence[Fraction] | None = None,
) -> Mechanism:
    """The mechanism of `design`, or that of `least_variance` if the loss is "total".

    Where it is too long in coming it is the best closed form, see `best_closed_form`.
    """
    known = best_closed_form(n, privacy, loss, checked(n, None, properties)[2])
    return _solved(n, privacy, loss, properties, prior) if known is None else known


def _solved(
    n: int,
    privacy: Privacy,
    loss: Loss | Literal["total"] | None,
    properties: Iterable[PropertyLike],
    prior: Sequence[Fraction] | None,
) -> Mechanism:
    if loss != TOTAL:
        return design(n, privacy, loss, properties).mechanism
    # Imported here: it loads the solver, which is not needed where designs are kept.
    from mechdesign.optimisation.unbiased_design import least_variance

    return least_variance(n, privacy, properties, prior=prior).mechanism


def best_closed_form(
    n: int,
    privacy: Privacy,
    loss: Loss | Literal["total"] | None,
    properties: tuple[Property, ...],
) -> Mechanism | None:
    """Return GM or EM for the counts 0 .. n of a group, if that is what a release should take.

    It is where one of them is known to be optimal, or where an optimum is expected to take more
    than a minute: then it is the better one, and for L0 its certificate bounds what is lost. Other
    neighbours than adjacent counts, and other properties than the seven, have none.
    """
    if privacy.neighbours != "adjacent" or not set(properties) <= set(SEVEN):
        return None
    if loss in (None, L0()):
        found = closed_form(n, privacy, properties)
        if found.excess and expected_seconds(n, "diagonal") <= _PATIENCE:
            return None
        proof = Certificate(privacy, L0(), properties, found.loss, found.bound, {})
        # Of few counts certificates have multipliers, which `design` finds.
        law = found.law(n, privacy)
        return Mechanism.from_law(law, privacy, proof if n > SMALL else None)
    if n <= (LARGEST_GROUP if loss == TOTAL else SMALL):
        return None
    laws: list[Law] = [FairLaw(n, privacy.alpha), GeometricLaw(n, privacy.alpha)]
    if privacy.alpha == 1:
        laws = [UniformLaw(n)]
    names = {item.short for item in properties}
    fitting = [Mechanism.from_law(law, privacy) for law in laws if names <= law.holds]
    if loss == TOTAL:
        return fitting[-1]  # GM has the least variance for every count
    if expected_seconds(n, "chains") <= _PATIENCE:
        return None
    return min(fitting, key=lambda mechanism: mechanism.loss(loss))


def _read(
    path: Path,
    inputs: Values,
    privacy: Privacy,
    loss: Loss | Literal["total"],
    properties: tuple[Property, ...],
    certificate: bool,
) -> Mechanism | None:
    """The mechanism in a file, if there is one and all of it is as it should be."""
    try:
        mechanism = Mechanism.load(path, certificate=certificate)
    except (MechanismError, OSError):
        return None
    fits = (
        mechanism.input_values == mechanism.output_values == inputs and mechanism.privacy == privacy
    )
    if not fits or not all(item.holds(mechanism) for item in properties):
        return None
    if certificate and loss != TOTAL:
        claim = mechanism.certificate
        if claim is None or (claim.loss, claim.properties) != (loss, properties):
            return None
    return mechanism


def _key(
    inputs: Values,
    privacy: Privacy,
    loss: Loss | Literal["total"],
    properties: tuple[Property, ...],
    prior: Sequence[Fraction] | None,
) -> str:
    """A digest of everything that a design depends on."""
    at = IndexTable(inputs, inputs)
    content: dict[str, Any] = {
        "format": files.FORMAT,
        "inputs": inputs.size,
        "alpha": to_text(privacy.alpha),
        "neighbours": privacy.neighbours,
        "loss": TOTAL if loss == TOTAL else files.loss_to_json(loss, inputs, inputs),
        # The constraints too: a user may have changed those of a property.
        "properties": [
            [item.text, *map(_constraints_to_json, item.constraints(at, privacy))]
            for item in properties
        ],
    }
    if prior is not None:
        content["prior"] = [*map(to_text, prior)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _constraints_to_json(constraints: Constraints) -> list[Any]:
    cells = np.ascontiguousarray(constraints.cells, dtype="<i8")
    return [
        [*cells.shape],
        hashlib.sha256(cells.tobytes()).hexdigest(),
        [to_text(number) for number in (*constraints.coefficients, constraints.bound)],
        constraints.equality,
    ]


def _default_folder() -> Path:
    """Return where programs keep what they can compute again."""
    if named := os.environ.get(FOLDER):
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "mechdesign"
