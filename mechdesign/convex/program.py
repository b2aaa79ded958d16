"""Convex programs over mechanisms: exact affine forms of the table and of convex functions of them.

Variable ``i * inputs + j`` is P[i, j]. A node is a convex function of affine forms, of the table
and of earlier nodes; the value of node k is variable ``outputs * inputs + k``. The objective and
the constraints are affine forms of all of these. Nothing here depends on how a program was stated,
or on how it is solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from mechdesign.base.arrays import Floats
from mechdesign.base.balls import ball, precision
from mechdesign.convex.affine import Affine, combined
from mechdesign.convex.atoms import Atom, Slope, upper
from mechdesign.losses import Costs
from mechdesign.table import Table
from mechdesign.values import Values


@dataclass(frozen=True)
class Node:
    """A convex function of affine forms.

    Attributes
    ----------
    atom : Atom
        The function.
    arguments : tuple of Affine
        What it is applied to.
    """

    atom: Atom
    arguments: tuple[Affine, ...]


@dataclass(frozen=True)
class SupportingPlane:
    """An affine function of a node's arguments, to be proved nowhere above the node's function.

    Attributes
    ----------
    slope : tuple of Fraction
        One number for each argument.
    constant : Fraction
        The value where all arguments are 0.
    """

    slope: Slope
    constant: Fraction

    @classmethod
    def of(cls, atom: Atom, slope: Slope) -> SupportingPlane:
        """The plane of this slope as high as is proved, but for rounding.

        Parameters
        ----------
        atom : Atom
            The function that it is to lie below.
        slope : tuple of Fraction
            One number for each argument.

        Returns
        -------
        SupportingPlane
            Proved. OutsideDomain is raised where there is none of this slope.
        """
        return cls(slope, -rounded_up(upper(atom.conjugate(slope))))

    def proved(self, atom: Atom) -> bool:
        """Whether the plane is below the function everywhere.

        Raises OutsideDomain where no plane of this slope is.
        """
        return bool(ball(-self.constant) >= atom.conjugate(self.slope))


def rounded_up(value: Fraction, bits: int = 80) -> Fraction:
    """The least multiple of 2^-bits that is not below ``value``."""
    return Fraction(-((-value.numerator << bits) // value.denominator), 1 << bits)


class NoMinorant(ValueError):
    """Planes and multipliers from which no lower bound follows."""


@dataclass(frozen=True)
class ConvexProgram:
    """Minimise a form over the tables of one shape, where other forms are at most 0.

    Attributes
    ----------
    outputs, inputs : Values
        What the rows and the columns of the table stand for.
    nodes : tuple of Node
        The convex functions, each of forms of the table and of nodes before it.
    objective : Affine
        What is minimised.
    constraints : tuple of Affine
        Forms that are at most 0, besides privacy and properties.
    text : str
        The objective as it was stated, for messages.
    """

    outputs: Values
    inputs: Values
    nodes: tuple[Node, ...]
    objective: Affine
    constraints: tuple[Affine, ...]
    text: str

    @property
    def size(self) -> int:
        """The number of entries of the table."""
        return self.outputs.size * self.inputs.size

    def balls(self, table: Table) -> Evaluation:
        """The values of all nodes at a table, in balls."""
        entries = [
            ball(Fraction(weight, table.denominator)) for row in table.weights for weight in row
        ]
        found = Evaluation(entries, [])
        for node in self.nodes:
            arguments = [found.at(form) for form in node.arguments]
            found.arguments.append(arguments)
            found.values.append(node.atom.value(arguments))
        return found

    @precision()
    def floats(self, matrix: Floats) -> tuple[list[Floats], Floats]:
        """The arguments of all nodes at a table of floats, and the table and their values, flat."""
        values = matrix.ravel().tolist()
        arguments = []
        for node in self.nodes:
            u = np.array([form.at(values.__getitem__, float) for form in node.arguments])
            arguments.append(u)
            values.append(float(node.atom.value([arb(each) for each in u.tolist()]).mid()))
        return arguments, np.array(values)

    def minorant(
        self, planes: Sequence[SupportingPlane], multipliers: Sequence[Fraction]
    ) -> Affine:
        """An affine form of the table alone that the objective is nowhere below.

        It holds for the tables that satisfy the constraints, if every plane is below its function:
        the constraints are added to the objective with their multipliers, and each node, from the
        last to the first, is replaced by its plane.

        Parameters
        ----------
        planes : sequence of SupportingPlane
            One for each node.
        multipliers : sequence of Fraction
            One for each constraint.

        Returns
        -------
        Affine
            The form.

        Raises
        ------
        NoMinorant
            Constraints and multipliers do not match, or a weight that has to be at least 0 is not.
        """
        if len(multipliers) != len(self.constraints):
            raise NoMinorant("the multipliers belong to another program")
        if min(multipliers, default=0) < 0:
            raise NoMinorant("a multiplier of a constraint is negative")
        total = combined([Fraction(1), *multipliers], [self.objective, *self.constraints])
        for k in reversed(range(len(self.nodes))):
            weight = total.terms.get(self.size + k)
            if weight is None:
                continue
            node, plane = self.nodes[k], planes[k]
            if weight < 0:
                raise NoMinorant(f"the weight of node {k}, {node.atom.name}, is negative")
            below = combined(plane.slope, node.arguments) + plane.constant
            total = total + weight * (below - Affine.variable(self.size + k))
        return total


class Evaluation:
    """The entries of a table and the values of nodes, in balls."""

    def __init__(self, entries: Iterable[arb], arguments: list[list[arb]]) -> None:
        self.values = list(entries)
        self.arguments = arguments

    def at(self, form: Affine) -> arb:
        """A ball that contains the value of a form."""
        return form.at(self.values.__getitem__, ball)


def costs_of(form: Affine, outputs: int, inputs: int) -> Costs:
    """A form of the table as a loss, up to a constant: see `shift_of`."""
    table = [
        [form.terms.get(i * inputs + j, Fraction(0)) * inputs for j in range(inputs)]
        for i in range(outputs)
    ]
    least = [min(column) for column in zip(*table, strict=True)]
    return Costs([[cost - low for cost, low in zip(row, least, strict=True)] for row in table])


def shift_of(form: Affine, costs: Costs) -> Fraction:
    """The largest number such that the form is at least the loss plus it, for every mechanism.

    The loss has the uniform prior, and each column of a mechanism sums to one.
    """
    table = costs.table
    outputs, inputs = len(table), len(table[0])
    return form.constant + sum(
        (
            min(
                form.terms.get(i * inputs + j, Fraction(0)) - table[i][j] / inputs
                for i in range(outputs)
            )
            for j in range(inputs)
        ),
        Fraction(0),
    )
