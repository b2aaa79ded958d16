"""square(...): the locally private mechanism of least loss whose outputs are the items."""

from __future__ import annotations

from collections.abc import Iterable

from mechdesign.base.numbers import Rational
from mechdesign.local.extremal_mechanism import local_privacy, whole_domain
from mechdesign.losses import Loss
from mechdesign.optimal import Design, design
from mechdesign.privacy import Privacy
from mechdesign.properties import PropertyLike


def square(
    domain: int,
    privacy: Privacy | float | Rational,
    loss: Loss | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    progress: bool = False,
) -> Design:
    """The best locally private mechanism whose outputs are the items, with a proof.

    For `L0` and the uniform prior this is generalised randomized response, `named.krr`; `L1` and
    `L2` alone leave outputs unused, which properties forbid. Source: thesis 6.8, eqs. 6.17-6.20.

    Parameters
    ----------
    domain : int
        The number of items 0 .. domain-1, at least 1; the table is domain x domain.
    privacy : Privacy, float, Fraction, int, str or Decimal
        ``Privacy(alpha=alpha, neighbours="all")``, or epsilon as a number.
    loss : Loss, optional
        `L0()` unless given.
    properties : iterable of Property, type or str, optional
        As for `design`, which solves it and whose errors it raises.
    progress : bool, default False
        Show what is going on, on standard error.

    Returns
    -------
    Design
        The exact table of shape (domain, domain), and the certificate that it is optimal.

    Raises
    ------
    ValueError
        A domain that is not a whole number of at least 1, or other neighbours than all.

    >>> d = square(4, Privacy(alpha="1/2", neighbours="all"))
    >>> d.certificate.objective, d.certificate.gap
    (Fraction(3, 5), Fraction(0, 1))
    """
    return design(
        whole_domain(domain) - 1, local_privacy(privacy), loss, properties, progress=progress
    )
