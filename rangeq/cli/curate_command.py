"""The command ``mechdesign curate``: from a table to a curator's release of it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from frequency.cli.protocol_commands import CHAIN, USERS
from frequency.schema import Attribute, Encoded, Schema, Text
from frequency.schema.column import columns_of
from mechdesign import ZCDP, ApproximateDP, NoRows, Privacy
from mechdesign.accounting import Ledger
from mechdesign.accounting.gaussian_loss import LEAST_SIGMA2, GaussianLoss
from mechdesign.base import (
    ProgressMeter,
    ReadOptions,
    listed,
    printable,
    shown,
    whole,
)
from mechdesign.cli.options import (
    FORCE,
    SEED,
    check_apart,
    command,
    generator_of,
    ledger_of,
    read_options,
    say,
)
from mechdesign.noise.discrete import DiscreteGaussian
from mechdesign.planning.planner import plan
from rangeq.central import (
    AdaptiveMarginals,
    CentralFlat,
    DistinctValues,
    GroupedSums,
    KeysOfPersons,
    MarginalStrategy,
    MatrixMechanism,
    NumbersOfRows,
    Release,
    ReleasedKeys,
    ReleasedQuantiles,
    Workload,
    count_cells,
    count_keys,
    count_marginals,
    key_rules,
    load_strategy,
    posterior_optimal,
    save_strategy,
    workload_optimal,
)
from rangeq.central.choice import usual_task
from rangeq.central.inputs import LARGEST_DIMENSION, LARGEST_MARGINALS, cells_along
from rangeq.central.matrix_mechanism.design import entry_bits
from rangeq.central.matrix_mechanism.mechanism import Promise
from rangeq.central.matrix_mechanism.strategy import LARGEST_ENTRY
from rangeq.central.persons import LARGEST_ROWS, RowsOfPersons, for_each_row, squared_change
from rangeq.central.released_keys import text_of

_NOTE = """\
What is printed and written follows from the schema and the release: no number of rows is said, nor
of those that are left out or clipped, nor whether there are any. Without --person a row is a user:
what is promised is for one row more or less. With --quantile nothing but these quantiles is
released, with less noise; else the histogram, which mechdesign query asks for ranges, boxes and
quantiles. With --strategy best what is measured is designed for the queries of --workload, with a
bound on what could be gained; --rho or --delta take Gaussian noise, with which many queries cost
less."""


_MOST_SENT = 1 << 20  # cells that a process counts in each block


@command(
    "curate",
    "release a histogram, quantiles, or sums and means of a table with noise, as a curator who is"
    " trusted with it; the mechanism of the least predicted error is chosen, and the table is read"
    " in blocks",
    "curate people.csv --schema people.toml --attribute age --attribute sex --epsilon 1 --out"
    " people.release\n"
    "  mechdesign curate people.csv --schema people.toml --mean income --by district --epsilon 1"
    " --out income.release",
    USERS,
    """
    --schema FILE [file]  what its columns hold (.toml or .json)
    --attribute NAME [repeated]  to release; several are released together, for boxes; of texts that
        nobody listed, with --delta, those that have enough users, and how many these are
    --mean NAME [repeated]  release the sum of a numeric attribute, and with it the number of users
        and the mean; its bounds, and what becomes of values outside, are the schema's
    --sum NAME [repeated]  the same
    --variance NAME [repeated]  the same, and the sum of squares
    --count-distinct NAME  release how many different values there are, such as towns
    --by NAME [repeated]  release sums, means or different values for each label of this attribute
    --keys FILE [file, repeated]  take the labels of a text attribute from a release of its keys
    --bounds FILE [file, repeated]  take the bounds of what is added up from a release of quantiles,
        such as of 0.01 and 0.99; values outside are clipped
    | --epsilon EPSILON [epsilon, required]  the privacy loss of the release
    | --rho RHO  the promise is rho-zero-concentrated privacy instead; takes --strategy
    --delta DELTA  the promise is (epsilon, delta)-differential privacy, such as 1e-9
    --quantile PHI [repeated]  release this quantile of the attribute, such as 0.5
    --mechanism NAME  flat, tree, wavelet, strategy, or with --delta gaussian (of quantiles
        exponential or tree, of texts optimal or gaussian) (default: the best)
    --strategy best|FILE  design what is measured for the workload, or take it from a file (.npz)
    --workload NAME  what the strategy is designed for: ranges (of ordered attributes, the default),
        prefixes, cells, marginals, 3-way marginals, width-30, or a name for each attribute with
        commas between them; marginals with --rho or --delta of up to 100 attributes
    --users N [int]  release single attributes and pairs, up to 100 of the first, for query
        --fitted to err least if there are about N rows: from public knowledge, not from the table
    --adaptive  with --users and --rho or --delta: half of the budget says which pairs depend, and
        the other half measures these again; errors fall with 20 attributes and more
    --workers N [int]  processes that count, not with --person (default: 1)
    --person COLUMN  the column that says whose row each is, where people may have several: what is
        promised is for one person more or less; rows without are left out
    --max-rows K  the most rows of a person that count, or different texts or values, drawn at
        random: from public knowledge, or a release of --rows-per-person (default: 1)
    --max-groups G [int]  instead, the most groups of a person that count, of --by or cells: with
        --rho or --delta the noise is then in proportion to the root of G
    --max-per-group M [int]  with --max-groups, the most rows in each (default: 1)
    --rows-per-person MOST [int]  release a --quantile, such as 0.95, of how many rows a person has,
        up to so many
    --save-strategy FILE [.npz]  write the strategy, too
    --dry-run  read the table and say what would be released, with which errors; nothing is drawn,
        written or spent
    --ledger FILE [file]  spend epsilon from this ledger, under the name of the file that is written
    --out FILE [.release, required]  the release to write
    """,
    SEED,
    FORCE,
    notes=f"{_NOTE}\n\n{CHAIN}",
)
def run_curate(options: argparse.Namespace) -> None:
    if options.strategy not in (None, "best"):
        for target in filter(None, (options.out, options.save_strategy)):
            check_apart(target, Path(options.strategy))
    kind = _kind_of(options)
    known = _known(options) if kind != "rows-per-person" else None
    sums, names = None, options.attribute
    if kind == "sums":
        assert known is not None
        sums = _sums(options, known)
        names = sums.names
    elif kind == "count-distinct":
        names = [*dict.fromkeys(options.by), options.count_distinct]
    ledger = ledger_of(options)
    options.workers = whole(options.workers or 1, "--workers", 1, what="a number of processes")
    if options.workers > 1 and (options.person is not None or kind == "count-distinct"):
        raise ValueError("--workers is not for --person and --count-distinct: parts may share some")
    _read_limits(options, kind)
    rng = generator_of(options, "the numbers of this release")
    schema = None if known is None else known.project(names)
    try:
        released = _drawn(options, kind, schema, sums, ledger, rng)
    except _DryRun as ready:
        if sums is not None:
            say(sums.statement(ready.mechanism))
        say("dry run: nothing was drawn, written or spent")
        return
    for line in () if schema is None else _policies(schema):
        say(line)
    if isinstance(released, ReleasedQuantiles):
        print(released)
    if sums is not None:
        say(sums.statement(released.mechanism))
    seeded = ", SEEDED and therefore not private" if released.reproducible else ""
    say(f"wrote {options.out}: {released.promised}{seeded}")
    if options.person is not None:
        say(f"rows without {options.person}, and beyond those that count, are left out")
    if options.save_strategy:
        save_strategy(options.save_strategy, released.mechanism.strategy)
        say(f"wrote {options.save_strategy}")


#: What is a release of its own, the option that asks for it, and the others that it takes.
_KINDS = {
    "rows-per-person": ("rows_per_person", ("quantile", "mechanism")),
    "count-distinct": ("count_distinct", ("by", "keys", "max_rows")),
    "sums": ("mean", ("by", "keys", "bounds", "sum", "variance", "max_rows", "max_groups")),
}

_PARTICULAR = (
    "attribute",
    "by",
    "count_distinct",
    "mean",
    "sum",
    "variance",
    "quantile",
    "mechanism",
    "strategy",
    "workload",
    "users",
    "adaptive",
    "save_strategy",
    "keys",
    "bounds",
    "max_rows",
    "max_groups",
)


def _kind_of(options: argparse.Namespace) -> str:
    """What is released; ValueError for options that contradict it."""
    numbers = options.mean or options.sum or options.variance
    asked = {
        "rows-per-person": options.rows_per_person is not None,
        "count-distinct": options.count_distinct is not None,
        "sums": bool(numbers),
    }
    kind = next((name for name, is_asked in asked.items() if is_asked), None)
    if kind is None:
        for name, whom in (("by", "--mean and --count-distinct"), ("bounds", "--mean")):
            if getattr(options, name):
                raise ValueError(f"--{name} is for {whom}")
        if not options.attribute:
            raise ValueError("what is to be released: --attribute, or --mean")
        return "attributes"
    own, allowed = _KINDS[kind]
    named, whose = ("sums and means are", "their") if numbers else (f"--{kind} is", "its")
    others = [name for name in _PARTICULAR if name not in (own, *allowed)]
    _leave_out(options, others, f"{named} a release of {whose} own")
    return kind


def _leave_out(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Raise ValueError for the first of some options that is given."""
    given = next((name for name in names if getattr(options, name)), None)
    if given is not None:
        raise ValueError(f"{why}: leave out --{given.replace('_', '-')}")


def _known(options: argparse.Namespace) -> Schema:
    """The schema, with keys and bounds that were released before."""
    if options.schema is None:
        raise ValueError("what the columns hold: --schema FILE")
    schema = Schema.load(options.schema)
    found: dict[str, Attribute] = {}
    for path in options.keys:
        keys = ReleasedKeys.load(path)
        found[_same(schema, keys.schema, path)] = keys.categorical
    for path in options.bounds:
        quantiles = ReleasedQuantiles.load(path)
        found[_same(schema, quantiles.schema, path)] = quantiles.bounds
    attributes = [found.get(attribute.name, attribute) for attribute in schema]
    return replace(schema, attributes=attributes)


def _same(schema: Schema, released: Schema, path: Path) -> str:
    """The name of the only attribute of a release, which the schema has, too."""
    (attribute,) = released
    if attribute.name not in schema.names or schema[attribute.name] != attribute:
        raise ValueError(f"{path} is of another {printable(attribute.name)} than the schema has")
    return attribute.name


def _read_limits(options: argparse.Namespace, kind: str) -> None:
    """Read how many rows of a person count, of how many groups."""
    groups, per_group = options.max_groups, options.max_per_group
    for name in ("max_rows", "max_groups", "max_per_group"):
        if getattr(options, name) is not None and options.person is None:
            raise ValueError(f"--{name.replace('_', '-')} is for --person")
    if groups is None:
        if per_group is not None:
            raise ValueError("--max-per-group is for --max-groups")
        options.groups, options.max_rows = 1, _most_rows(options.max_rows)
        return
    if options.max_rows is not None:
        raise ValueError("--max-groups is instead of --max-rows")
    if kind == "sums" and not options.by:
        raise ValueError("--max-groups of sums is for --by")
    options.groups = whole(groups, "--max-groups", 1, LARGEST_ROWS)
    each = whole(1 if per_group is None else per_group, "--max-per-group", 1, LARGEST_ROWS)
    options.max_rows = whole(options.groups * each, "rows of a person", 1, LARGEST_ROWS)
    others = ("quantile", "mechanism", "strategy", "workload", "users")
    _leave_out(options, others, "--max-groups measures cells one by one")


def _most_rows(given: str | None) -> int:
    """A number of rows, or the largest one of a release of `_rows_per_person`."""
    if given is not None and not given.strip().isdecimal():
        released = ReleasedQuantiles.load(given)
        if released.schema.names != NumbersOfRows(1).schema.names:
            raise ValueError(f"{given} is no release of --rows-per-person")
        return int(released.ends[1].max())
    return whole(int(given or 1), "--max-rows", 1, LARGEST_ROWS)


def _drawn(
    options: argparse.Namespace,
    kind: str,
    schema: Schema | None,
    sums: GroupedSums | None,
    ledger: Ledger | None,
    rng: Any,
) -> Any:
    """Draw and write a release of a kind; without a schema, of how many rows people have."""
    if schema is None:
        return _rows_per_person(options, ledger, rng)
    if kind == "count-distinct":
        return _distinct(options, schema, ledger, rng)
    if kind == "attributes" and any(isinstance(attribute, Text) for attribute in schema):
        return _keys(options, schema, ledger, rng)
    return _numbers(options, schema, sums, ledger, rng)


class _DryRun(Exception):
    """All is ready to be drawn, and is not to be."""

    def __init__(self, mechanism: Any) -> None:
        super().__init__("a dry run")
        self.mechanism = mechanism


def _released(
    options: argparse.Namespace,
    ledger: Ledger | None,
    mechanism: Any,
    cost: Any,
    draw: Callable[[], Any],
) -> Any:
    """Draw a release, write it, and spend what it costs: all of that, or nothing."""
    say(f"mechanism: {mechanism!r}")
    if options.dry_run:
        raise _DryRun(mechanism)
    name = options.out.name
    with (
        nullcontext(options.out) if ledger is None else ledger.publishing(cost, name, options.out)
    ) as path:
        released = draw()
        released.save(path)
    return released


def _rows_per_person(
    options: argparse.Namespace, ledger: Ledger | None, rng: Any
) -> ReleasedQuantiles:
    """Release quantiles of how many rows a person has."""
    if options.person is None or not options.quantile:
        raise ValueError("--rows-per-person takes --person and --quantile")
    numbers = NumbersOfRows(options.rows_per_person)
    choose = _chooser(options, numbers.schema, ledger)
    with ProgressMeter("curate"):
        _each_block(options, (), lambda named, _: numbers.add(named))
    mechanism = choose()
    draw = partial(ReleasedQuantiles.draw, numbers.schema, mechanism, numbers.counts(), rng, rows=1)
    return _released(options, ledger, mechanism, options.epsilon, draw)


def _distinct(
    options: argparse.Namespace, schema: Schema, ledger: Ledger | None, rng: Any
) -> Release:
    """Release how many different values there are."""
    if options.epsilon is None or options.delta is not None:
        raise ValueError("--count-distinct takes --epsilon alone")
    persons = options.person is not None
    values = DistinctValues(schema, options.max_rows if persons else 0, rng)
    epsilon = Fraction(options.epsilon) / options.max_rows
    mechanism = CentralFlat(values.schema.sizes, epsilon)
    if ledger is not None:
        ledger.require(options.epsilon, "this release")
    with ProgressMeter("curate"):
        if persons:
            _each_block(options, schema.names, lambda named, block: values.add(block, named))
        else:
            for encoded in encoded_blocks(options.table, schema, read_options(options)):
                values.add(encoded)
    told = {"rows": options.max_rows if persons else 0, "measure": "values"}
    draw = partial(Release.draw, values.schema, mechanism, values.counts(), rng, **told)
    return _released(options, ledger, mechanism, options.epsilon, draw)


def _numbers(
    options: argparse.Namespace,
    schema: Schema,
    sums: GroupedSums | None,
    ledger: Ledger | None,
    rng: Any,
) -> Any:
    """Release a histogram, quantiles, or sums."""
    if sums is None:
        if options.max_groups is None:
            choose = _chooser(options, schema, ledger)
        else:
            choose = partial(_of_cells, options, schema)
        # First the table, so that what is wrong in it is said at once: the choice may take longer
        with ProgressMeter("curate"):  # without steps, which would tell the number of rows
            counts = _counts(options, schema, rng)
        mechanism = choose() if ledger is None else _on_a_fine_grid(choose())
    else:
        mechanism = _of_numbers(options, sums, ledger)
        with ProgressMeter("curate"):
            if options.person is None:
                counts = _counted(options, sums, partial(sums.count, mechanism=mechanism))
            else:
                counts = sums.count(_of_persons(options, sums, rng), mechanism)
    matrix = isinstance(mechanism, (MatrixMechanism, AdaptiveMarginals))
    cost = options.epsilon
    if matrix and not isinstance(mechanism.promise, Privacy):  # Gaussian noise
        change = squared_change(options.max_rows, options.groups)
        cost = GaussianLoss(change * mechanism.cost.squared_mu)
    rows = 0 if options.person is None else options.max_rows
    draw: Callable[[], Any]
    if options.quantile:
        draw = partial(ReleasedQuantiles.draw, schema, mechanism, counts, rng, rows)
        return _released(options, ledger, mechanism, cost, draw)
    promise = promise_of(options)
    by_rho = rows > 1 and isinstance(getattr(mechanism, "promise", None), ZCDP)
    delta = promise.delta if by_rho and isinstance(promise, ApproximateDP) else None
    told = {"rows": rows, "groups": options.groups, "delta": delta, "sums": sums}
    draw = partial(Release.draw, schema, mechanism, counts, rng, **told)
    return _released(options, ledger, mechanism, cost, draw)


def _keys(
    options: argparse.Namespace, schema: Schema, ledger: Ledger | None, rng: Any
) -> ReleasedKeys:
    """Release the texts that have enough users."""
    text_of(schema)
    others = ("quantile", "strategy", "workload", "users", "adaptive", "save_strategy")
    _leave_out(options, (*others, "max_groups"), "keys are a release of their own")
    if options.rho is not None:
        raise ValueError("keys that nobody listed take --epsilon and --delta, not --rho")
    if options.delta is None:
        raise ValueError(f"{schema.names[0]} has no list of labels: which are there takes --delta")
    rules = key_rules(options.epsilon, options.delta, options.max_rows)
    for each in rules:
        print(each)
    named = {rule.kind: rule for rule in rules}
    rule = named.get(options.mechanism or rules[0].kind)
    if rule is None:
        raise ValueError(f"--mechanism {options.mechanism}: here there are {listed(named)}")
    if ledger is not None:
        ledger.require(options.epsilon, "this release")
    with ProgressMeter("curate"):
        counts: Mapping[str, int]
        if options.person is None:
            counts = _counted(options, schema, partial(count_keys, schema))
        else:
            counts = _keys_of_persons(options, schema, rng)
    persons = options.person is not None
    draw = partial(ReleasedKeys.draw, schema, rule, counts, rng, persons=persons)
    return _released(options, ledger, rule, rule.cost, draw)


def _keys_of_persons(options: argparse.Namespace, schema: Schema, rng: Any) -> Mapping[str, int]:
    """The persons of each text."""
    keys = KeysOfPersons(schema, options.max_rows, rng)
    _each_block(options, schema.names, lambda named, block: keys.add(named, block))
    return keys.counts()


def _counts(options: argparse.Namespace, schema: Schema, rng: Any) -> Any:
    """The histogram, or the tables of marginals where no more is measured."""
    if options.users is None and len(schema) <= LARGEST_DIMENSION:
        if options.workers > 1 and math.prod(cells_along(schema)) > _MOST_SENT:
            raise ValueError(f"--workers is for histograms of at most {_MOST_SENT} cells")
        count: Callable[[Any], Any] = partial(count_cells, schema)
    else:
        asked = Workload.of(options.workload or "marginals", cells_along(schema, LARGEST_MARGINALS))
        ways = max(sum(part.name != "total" for part in term.factors) for term in asked.terms)
        count = partial(count_marginals, schema, ways=ways)
    if options.person is not None:
        return count(_of_persons(options, schema, rng))
    return _counted(options, schema, count)


def _counted(
    options: argparse.Namespace, schema: Schema | GroupedSums, count: Callable[[Any], Any]
) -> Any:
    """What a function counts in the table, perhaps by several processes."""
    from frequency.storage.table import count_table

    given = read_options(options)
    if options.workers == 1:
        return count(encoded_blocks(options.table, schema, given))
    try:
        return count_table(options.table, schema.names, count, given, workers=options.workers)
    except NoRows:
        return count([])


def _sums(options: argparse.Namespace, known: Schema) -> GroupedSums:
    """What is counted for sums and means."""
    numbers = [*dict.fromkeys([*options.mean, *options.sum, *options.variance])]
    by = [*dict.fromkeys(options.by)]
    both = next((name for name in by if name in numbers), None)
    if both is not None:
        raise ValueError(f"--by {both}: it is grouped by, and added up: say it in one of them")
    return GroupedSums(known.project([*by, *numbers]), len(numbers), bool(options.variance))


def _of_numbers(
    options: argparse.Namespace, sums: GroupedSums, ledger: Ledger | None
) -> MatrixMechanism:
    """The mechanism of least noise for sums and means."""
    if ledger is not None and options.epsilon is not None:
        ledger.require(options.epsilon, "this release")
    return sums.best(_promises(options))


def _promises(options: argparse.Namespace) -> list[Promise]:
    """The promises for a row with which a release keeps what is asked for."""
    promises = [_of_a_row(options)]
    if options.delta is not None:  # which noise that needs none keeps, too
        promises.append(for_each_row(Privacy.from_epsilon(options.epsilon), options.max_rows))
    return promises


def _on_a_fine_grid(mechanism: Any) -> Any:
    """The same numbers in finer units, if only so a ledger knows what Gaussian noise costs."""
    # Little noise on small integers has less variance, and more is known of noise on large ones
    noise = getattr(mechanism, "noise", None)
    if not isinstance(noise, DiscreteGaussian) or noise.sigma2 >= LEAST_SIGMA2:
        return mechanism
    return MatrixMechanism(mechanism.strategy.finer(), mechanism.promise)


def _chooser(
    options: argparse.Namespace, schema: Schema, ledger: Ledger | None
) -> Callable[[], Any]:
    """Return what chooses the mechanism; ValueError for options that contradict each other."""
    strategy, workload = options.strategy, options.workload
    if options.users is not None:
        others = ("strategy", "workload", "quantile", "mechanism")
        _leave_out(options, others, "--users chooses what is measured")
        promise = _of_a_row(options)
        sizes = cells_along(schema, LARGEST_MARGINALS)
        if options.adaptive and isinstance(promise, Privacy):
            raise ValueError("--adaptive has Gaussian noise: give --rho, or --delta")
        kind: Any = AdaptiveMarginals if options.adaptive else posterior_optimal
        return partial(kind, sizes, promise, options.users)
    if options.adaptive:
        raise ValueError("--adaptive is for --users")
    if strategy is None and options.rho is not None:
        raise ValueError("--rho takes --strategy best, a strategy from a file, or --users")
    if strategy is None and (workload is not None or options.save_strategy is not None):
        raise ValueError("--workload and --save-strategy are for --strategy best")
    if strategy is not None and (options.quantile or options.mechanism is not None):
        raise ValueError("--strategy is instead of --quantile and --mechanism")
    if options.quantile and options.delta is not None:
        raise ValueError("quantiles keep an epsilon with a delta of 0: leave out --delta")
    promise = _of_a_row(options)
    if strategy is None:
        if ledger is not None:
            ledger.require(options.epsilon, "this release")
        return partial(_planned, options, schema)
    sizes = cells_along(schema, LARGEST_MARGINALS)
    if strategy == "best":
        return partial(_designed, _workload(workload, schema), sizes, promise)
    if workload is not None:
        raise ValueError("--workload is for --strategy best: a file has a strategy already")
    loaded = load_strategy(strategy).strategy
    if loaded.sizes != sizes:  # found here, before a ledger is spent from
        raise ValueError(
            f"{strategy}: a strategy for {shown(loaded.sizes)} cells, and the attributes have"
            f" {shown(sizes)} items"
        )
    return partial(MatrixMechanism, loaded, promise)


def _of_cells(options: argparse.Namespace, schema: Schema) -> MatrixMechanism:
    """The mechanism of least noise for cells by themselves, of which a person changes several."""
    sizes = cells_along(schema)

    def measured(promise: Promise) -> MatrixMechanism:
        weight = 1
        if not isinstance(promise, Privacy):
            weight = min(1 << entry_bits(promise.noise_ratio), LARGEST_ENTRY)
        strategy = MarginalStrategy(sizes, [tuple(range(len(sizes)))], [weight])
        return MatrixMechanism(strategy, promise)

    best = min(map(measured, _promises(options)), key=lambda each: each.workload_variance("cells"))
    error = math.sqrt(best.workload_variance("cells"))
    say(f"standard error of the number of rows in each cell: {error:.4g}")
    return best


def _planned(options: argparse.Namespace, schema: Schema) -> Any:
    """The mechanism of the least predicted error, or that of a name; prints the table."""
    if len(schema) > LARGEST_DIMENSION:
        raise ValueError(
            f"a histogram is of at most {LARGEST_DIMENSION} attributes, got {len(schema)}: --users"
            " N, or --strategy best --workload marginals, release those of up to"
            f" {LARGEST_MARGINALS}"
        )
    asked: dict[str, Any] = {"q": tuple(options.quantile)} if options.quantile else {}
    task = usual_task(schema, bool(options.quantile))
    if options.delta is not None:
        asked["delta"] = options.delta
    found = plan(task, schema, epsilon=Fraction(options.epsilon) / options.max_rows, **asked)
    if options.max_rows > 1:
        say(f"up to {options.max_rows} rows of a person count: each has its part of epsilon")
    print(found)
    protocols = {item.name: item.protocol for item in found.candidates}
    name = found.best.name if options.mechanism is None else options.mechanism
    if name not in protocols:
        refused = dict(found.refused).get(name, f"here there are {listed(protocols)}")
        raise ValueError(f"--mechanism {name}: {refused}")
    chosen = protocols[name]
    if options.max_rows > 1 and isinstance(getattr(chosen, "promise", None), ApproximateDP):
        chosen = MatrixMechanism(chosen.strategy, _of_a_row(options))
    return chosen


def _designed(
    workload: str | list[str], sizes: tuple[int, ...], promise: Promise
) -> MatrixMechanism:
    design = workload_optimal(workload, sizes, promise)
    say(str(design))
    return design.mechanism


def promise_of(options: argparse.Namespace) -> Promise:
    """Return what --rho, or --epsilon and --delta, promise."""
    if options.rho is not None:
        if options.delta is not None:
            raise ValueError("--delta is for --epsilon: --rho says all")
        return ZCDP(options.rho)
    if options.delta is not None:
        return ApproximateDP(options.epsilon, options.delta)
    return Privacy.from_epsilon(options.epsilon)


def _of_a_row(options: argparse.Namespace) -> Promise:
    """The promise for a row that keeps what is asked for each person, or for each row."""
    return for_each_row(promise_of(options), options.max_rows, options.groups)


def _workload(asked: str | None, schema: Schema) -> str | list[str]:
    """The names for each attribute: ranges and prefixes are of ordered ones."""
    if asked is None or asked in ("ranges", "prefixes"):
        return [(asked or "ranges") if attribute.ordered else "cells" for attribute in schema]
    return [name.strip() for name in asked.split(",")] if "," in asked else asked


def encoded_blocks(
    table: Path, schema: Schema | GroupedSums, options: ReadOptions
) -> Iterator[Encoded]:
    """The rows of the table, in blocks; of an empty one none: to refuse it would tell that."""
    from frequency.storage.table import applied  # pyarrow only for those who need it

    with suppress(NoRows):
        yield from applied(table, schema.names, schema.encode, options)


def _of_persons(
    options: argparse.Namespace, schema: Schema | GroupedSums, rng: Any
) -> Iterator[Encoded]:
    """The rows of persons that count."""
    by = len(schema.groups) if isinstance(schema, GroupedSums) else len(schema)
    by = 0 if options.max_groups is None else by
    persons = RowsOfPersons(options.max_rows, rng, groups=options.groups, by=by)
    names = schema.names
    _each_block(options, names, lambda named, block: persons.add(named, schema.encode(block)))
    return persons.kept()


def _each_block(
    options: argparse.Namespace, names: Sequence[str], taken: Callable[[Any, Any], None]
) -> None:
    """Hand every block of some columns on, after the column that names persons."""
    from frequency.storage.table import applied

    def handed(block: Any) -> None:
        (named,) = columns_of(block, (options.person,))
        taken(named, block)

    columns = [*dict.fromkeys((*names, options.person))]
    with suppress(NoRows):
        for _ in applied(options.table, columns, handed, read_options(options)):
            pass


def _policies(schema: Schema) -> Iterator[str]:
    """Say what became of rows that do not fit, but not of how many."""
    skipping = [attribute.name for attribute in schema if attribute.skips]
    if skipping:
        yield f"rows without {listed(skipping)} are left out: how many is not said"
    outside = {attribute.name: attribute for attribute in schema if attribute.outside == "clip"}
    clipping = [name for name, attribute in outside.items() if not isinstance(attribute, Text)]
    if len(clipping) < len(outside):
        yield "texts that are too long are cut short: how many is not said"
    if clipping:
        yield f"values outside of {listed(clipping)} are in the end bins: how many is not said"
