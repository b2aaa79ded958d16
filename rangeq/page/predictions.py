"""Predictions: how far off answers would be, and what they would look like, by no table.

All of it follows from the choices: an error that depends on the people is that of people who are
spread evenly. It is computed by a process of its own, which can be ended.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from io import BytesIO
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frequency.planning.survey_plan import plan_survey
from frequency.schema import Schema, Text
from frequency.schema.attribute import ItemAttribute
from frequency.schema.joint_plot import places_among
from frequency.schema.numeric import Ordered
from mechdesign import Privacy, plan
from mechdesign.base import brief, listed
from mechdesign.exceptions import MechanismError
from mechdesign.perturbation import Disclosure, PerturbationTable, design_perturbation
from rangeq.central import GroupedSums, MarginalCounts, Release, for_each_row, key_rules
from rangeq.central.choice import usual_task
from rangeq.central.inputs import cells_along
from rangeq.cli.answer_rows import MOST_DRAWN, AnswerRow, compared
from rangeq.cli.answering import AskedText, EstimateSource
from rangeq.page.choices import KEYS, MOST_EPSILON, MOST_PEOPLE, Choices, InvalidChoice, pointed
from rangeq.page.programs import python

#: What a person may have done, and is told in words.
REFUSALS = (ValueError, TypeError, OSError, MechanismError, ImportError)

_DRAWING = threading.Lock()  # of pictures: matplotlib draws one at a time

_SHOWN_PEOPLE = 1000  # of a picture of means, before they are as many as are expected


class PredictedAnswer(NamedTuple):
    """An answer that people will ask for, and its standard error."""

    what: str
    error: float  # standard, or root mean square
    unit: str

    def __str__(self) -> str:
        return f"{self.what} {self.error:.4g} {self.unit}"


class Prediction(NamedTuple):
    """Predicted errors of the chosen mechanism, and of others."""

    answers: Sequence[PredictedAnswer]
    others: Sequence[tuple[str, float, bool]]  # name, error, and whether it is chosen
    mechanism: Any  # None of keys
    error_is: str
    lines: Sequence[str] = ()


def predicted(work: Choices, folder: Path) -> Prediction:
    """Return the errors of answers, which follow from the choices, and never from the table."""
    schema, epsilon, delta = work.asked(folder), work.loss, work.failure
    if work.trust == "nobody":
        return _of_devices(work.task(schema), schema, epsilon, work.expected)
    if work.kind == "perturbed":
        return _of_keys(*work.rules, epsilon)
    particular: Any = work.fractions if work.kind == "quantiles" else None
    if work.kind == "means":
        particular = (len(work.number), work.expected)
    return _predicted(work.kind, schema, (epsilon, delta, work.most), particular)


@lru_cache(maxsize=64)
def _of_devices(task: str, schema: Schema, epsilon: Fraction, people: int) -> Prediction:
    found = plan_survey(task, schema, n=people, epsilon=epsilon)
    what, _, _ = found.expectation.partition(":\n")[0].partition(" errs ")
    what = what.removeprefix(f"{found.chosen.name}: ")
    if not math.isfinite(found.chosen.error) or what == found.expectation:
        what = "the rarest value that is found"
    chosen, candidates = found.chosen, found.plan.candidates
    told = [(each.name, people * float(each.error), each is chosen) for each in candidates]
    answers = [PredictedAnswer(what, people * float(chosen.error), "people")]
    of = found.plan.task.error_is
    return Prediction(answers, told, found, f"{of}, in people", [found.expectation])


@lru_cache(maxsize=16)
def _of_keys(largest: int, noise: int, blocked: int, epsilon: Fraction) -> Prediction:
    given: dict[str, Any] = {"blocked": blocked, "keep_zeros": True} if blocked else {}
    design = design_perturbation(
        largest, noise=noise, objective="delta", epsilon=epsilon, protected=1, **given
    )
    table = design.table
    errors = [math.sqrt(table.variance(count)) for count in range(largest + 1)]
    answers = [
        PredictedAnswer(f"a count of {largest} or more", errors[-1], "people"),
        PredictedAnswer("any count, at the most", max(errors), "people"),
    ]
    delta = brief(design.certificate.value, 3)
    lines = [
        f"One cell keeps epsilon {brief(epsilon)} but for a delta of {delta}, the least there can"
        f" be, and a little more with {KEYS} keys; that a cell is empty may be seen. Several cells"
        " of one person tell more.",
        *(" ".join(part.split()) for part in Disclosure(table, protected=1).words.split("\n\n")),
    ]
    return Prediction(answers, (), table, "standard error", lines)


@lru_cache(maxsize=64)
def _predicted(
    kind: str, schema: Schema, loss: tuple[Fraction, Fraction | None, int], particular: Any
) -> Prediction:
    epsilon, delta, rows = loss
    if kind == "keys":
        assert delta is not None
        rules = key_rules(epsilon, delta, rows)
        answers = [PredictedAnswer("the number of people of a value", rules[0].deviation, "people")]
        others = [(rule.kind, rule.deviation, rule is rules[0]) for rule in rules]
        return Prediction(answers, others, None, "standard error, in people", [*map(str, rules)])
    if kind == "means":
        number, people = particular
        sums = GroupedSums(schema, number)
        mechanism = sums.mechanism(for_each_row(Privacy.from_epsilon(epsilon), rows))
        users, *totals = sums.standard_errors(mechanism)
        answers = [PredictedAnswer(*users[:2], "people"), *starmap(PredictedAnswer, totals)]
        # If they are spread evenly over the groups, and their mean is in the middle of the bounds
        each = people / math.prod(sums.sizes[: len(sums.groups)])
        of = " of a group" if sums.groups else ""
        for name in sums.added:
            what = f"the mean of {name}{of}, of {each:.0f} people"
            error = sums.error_of_mean(mechanism, name, each)
            answers.append(PredictedAnswer(what, error, sums[name].unit))
        lines = [
            "Of means in the middle of the bounds; at one of them the error is 1.4 times that."
        ]
        return Prediction(answers, (), mechanism, "standard error", lines)
    quantiles = kind == "quantiles"
    asked = {"q": particular} if quantiles else {}
    found = plan(usual_task(schema, quantiles), schema, epsilon=epsilon / rows, **asked)
    told = [(each.name, float(each.error), each is found.best) for each in found.candidates]
    answers = [PredictedAnswer("the rank of a quantile", float(found.best.error), "people")]
    if kind == "counts":
        answers = list(_of_attributes(schema, found.best.protocol))
    return Prediction(answers, told, found.best.protocol, found.task.error_is)


def reaching(work: Choices, folder: Path, error: str, find: str) -> Choices:
    """Return the same with the epsilon, or the people, of which an answer errs by so much."""
    try:
        wanted = float(pointed(error.strip().removesuffix("%"))) / 100
    except ValueError:
        wanted = math.nan
    if not (math.isfinite(wanted) and wanted > 0):
        raise InvalidChoice("the error that is wanted is a number above 0", "error")
    beyond = f"no epsilon up to {MOST_EPSILON} reaches this error"
    if find == "people":
        beyond = f"no number of people up to {MOST_PEOPLE} reaches this error"

    def share(found: Choices) -> float:
        return predicted(found, folder).answers[0].error / found.expected

    # Errors are nearly in proportion to a power of either, so that few steps find it
    found = work if find == "people" else replace(work, epsilon="1")
    for _ in range(8):
        over = min(share(found) / wanted, 1e30)  # of which a power is a float
        if abs(over - 1) < 0.01:
            break
        people = found.expected * over ** (2 if work.trust == "nobody" else 1)
        epsilon = float(found.loss) * over
        if not (people <= MOST_PEOPLE if find == "people" else 1e-4 <= epsilon <= MOST_EPSILON):
            raise InvalidChoice(beyond, "error")
        if find == "people":
            found = replace(found, people=str(max(math.ceil(people), 1)))
        else:
            found = replace(found, epsilon=f"{epsilon:.3g}")
    return found


def summary(work: Choices, folder: Path) -> dict[str, Any]:
    """Return what the page tells of a choice."""
    odds = math.exp(float(work.loss))
    prediction = predicted(work, folder)
    return {
        "prediction": prediction._replace(mechanism=None),
        "odds": f"{odds:.3g}",
        "sure": f"{100 * odds / (1 + odds):.3g}",
        "command": work.shell(folder),
        "python": python(work, folder),
        "pictures": drawn(work, work.asked(folder)),
    }


def pictured(work: Choices, folder: Path, names: Sequence[str]) -> bytes:
    """Return the picture of an answer about people who are spread evenly, as SVG."""
    if not set(names) <= {*work.asked(folder).names}:
        raise InvalidChoice("nothing is drawn of this question")
    return svg(lambda: _figure(work, folder, names))


def _figure(work: Choices, folder: Path, names: Sequence[str]) -> Any:
    if work.kind == "perturbed":
        return _perturbed(work, folder)
    estimate = _estimated(work, folder)
    source = EstimateSource("an example", estimate, 0.95)
    named = names and not estimate.numbers
    return source.picture([AskedText("marginal", "", tuple(names))] if named else [])


def svg(draw: Callable[[], Any]) -> bytes:
    """Return a picture as SVG, in the page's words."""
    from matplotlib.text import Text as Written  # loads matplotlib

    buffer = BytesIO()
    with _DRAWING:
        figure = draw()
        for text in figure.findobj(Written):
            text.set_text(of_people(text.get_text()))
        figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def of_people(text: str) -> str:
    """Return a text of the library with the page's word for users."""
    return re.sub(r"\b(users|respondents)\b", "people", text)


def panels(schema: Schema) -> list[tuple[str, ...]]:
    """Return the columns of each picture: of more than two one by one, but a map; (): of all."""
    if len(schema) <= 2:
        return [()]
    places = places_among(schema.attributes)
    both = () if places is None else (places.across, places.up)
    return [*[both] * bool(both), *((name,) for name in schema.names if name not in both)]


def drawn(work: Choices, schema: Schema) -> list[tuple[str, ...]]:
    """The columns of each picture, as of `panels`; none: no picture."""
    if work.kind in ("quantiles", "keys") and (work.trust != "nobody" or work.kind == "keys"):
        return []
    if work.trust == "nobody":
        return [()] if len(schema) == 1 else []
    if work.kind == "perturbed":
        few = all(not isinstance(each, Text) for each in schema)
        return [()] if few and math.prod(schema.sizes) <= MOST_DRAWN else []
    return [()] if work.kind == "means" else panels(schema)


def _perturbed(work: Choices, folder: Path) -> Any:
    """Counts of people who are spread evenly, with noise as each of them may have it."""
    schema, table = work.asked(folder), predicted(work, folder).mechanism
    assert isinstance(table, PerturbationTable)
    sizes = cells_along(schema)
    number = math.prod(sizes)
    if number > MOST_DRAWN:
        raise InvalidChoice("nothing is drawn of so many cells")
    counts = np.diff(np.arange(number + 1) * work.expected // number)
    keys = np.random.default_rng(1).random(number)
    noisy = [_drawn(table, int(n), key) for n, key in zip(counts, keys, strict=True)]
    labels = [", ".join(each) for each in product(*(a.item_labels for a in _items(schema)))]
    rows = []
    for label, true, value in zip(labels, counts.tolist(), noisy, strict=True):
        width = 1.96 * math.sqrt(table.variance(true))
        rows.append(AnswerRow(label, value, width, value - width, value + width, "people"))
    return compared(f"counts by {listed(schema.names)}", labels, rows, 0.95, as_given=True)


def _drawn(table: PerturbationTable, count: int, key: float) -> int:
    """A count with the noise at a place in 0 .. 1 of its keys."""
    law = table.law(count)
    shares = np.cumsum([float(Fraction(many, table.keys)) for many in law.values()])
    return count + [*law][min(int(np.searchsorted(shares, key)), len(law) - 1)]


def _items(schema: Schema) -> list[ItemAttribute]:
    return [attribute for attribute in schema if isinstance(attribute, ItemAttribute)]


def _estimated(work: Choices, folder: Path) -> Any:
    """An estimate such as a release would have of people who are spread evenly."""
    schema, rng = work.asked(folder), np.random.default_rng(1)
    people, mechanism = work.expected, predicted(work, folder).mechanism
    told: dict[str, Any] = {}
    counts: Any
    if not drawn(work, schema):
        raise InvalidChoice("nothing is drawn of this question")
    if work.trust == "nobody":
        counts = np.diff(np.arange(schema.sizes[0] + 1) * people // schema.sizes[0])
        return mechanism.survey.estimate(mechanism.survey.simulate(counts, rng))
    if work.kind == "means":
        sums = GroupedSums(schema, len(work.number))
        few = sums.count([_spread(schema, rng)], mechanism)
        times = max(people // _SHOWN_PEOPLE, 1)
        tables = {view: table * times for view, table in few.tables.items()}
        counts, told = MarginalCounts(few.sizes, tables, few.parts), {"sums": sums}
    else:
        # Nearly as many in each; where there are more cells than people, in cells at random
        counts = np.zeros(cells_along(schema), dtype=np.int64)
        counts += people // counts.size
        counts.flat[rng.choice(counts.size, people % counts.size, replace=False)] += 1
    return Release.draw(schema, mechanism, counts, rng, **told).estimate


def statement(work: Choices, folder: Path) -> str:
    """Return a paragraph on method, for who publishes the answers."""
    whom = f"one person, of whom up to {work.most} rows count" if work.person else "one row"
    loss = f"epsilon {brief(work.loss)}"
    if work.failure is not None:
        loss += f" and delta {brief(work.failure)}"
    names = work.asked(folder).names
    what = f"the column {names[0]}" if len(names) == 1 else f"the columns {listed(names)}"
    errors = "; ".join(str(answer) for answer in predicted(work, folder).answers)
    bias = " and answers are without bias" if work.kind in ("counts", "means") else ""
    return (
        f"The numbers were released with differential privacy, {loss}, with respect to {whom}"
        f" more or less, by mechdesign, which read {what} of the table, as {work.schema}"
        f" describes them in public. Noise was drawn once{bias}. Standard errors: {errors}."
        " They do not include errors of the table itself."
    )


def _of_attributes(schema: Schema, mechanism: Any) -> Iterator[PredictedAnswer]:
    """The number of people of one item of each attribute, and in half of an ordered one."""
    for place, attribute in enumerate(schema):
        first = np.zeros((len(schema), 1), dtype=np.int64)
        last = np.array(schema.sizes, dtype=np.int64)[:, None] - 1
        bins = getattr(attribute, "bins", attribute.size)
        first[place], last[place] = bins // 2, bins // 2
        error = math.sqrt(float(mechanism.errors.variance(first, last)[0]))
        yield PredictedAnswer(f"people of one {attribute.name}", error, "people")
        if attribute.ordered and bins > 2:
            first[place], last[place] = bins // 4, bins // 4 + bins // 2 - 1
            error = math.sqrt(float(mechanism.errors.variance(first, last)[0]))
            yield PredictedAnswer(f"people in half of {attribute.name}", error, "people")


def _spread(schema: Schema, rng: np.random.Generator) -> dict[str, Any]:
    """Rows of people whose values are spread evenly."""

    found = dict[str, Any]()
    for attribute in _items(schema):
        items = rng.integers(0, attribute.bins, _SHOWN_PEOPLE)
        found[attribute.name] = [attribute.item_labels[item] for item in items.tolist()]
        if isinstance(attribute, Ordered):
            found[attribute.name] = attribute.drawn_in(items, rng)
    return found


def foretold(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function returns; what it refuses is an `InvalidChoice`, also if pickled."""
    try:
        return function(*given)
    except REFUSALS as refusal:
        raise InvalidChoice(str(refusal), getattr(refusal, "field", "")) from None
