"""The published law of every channel: Pr[report | item], from its definition and the parameters
that client and server share.

`probability` is written once for each channel, in the words of its docstring; a protocol that is
put together from channels has the law that follows from theirs. It never asks the code that draws,
nor `audit`.
"""

from fractions import Fraction
from functools import singledispatch
from math import comb, perm, prod

import numpy as np

from frequency import (
    GRR,
    HRR,
    OLH,
    AffineSelection,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.core.mixture import Mixture
from frequency.heavy.published.succinct_histogram import Channels
from frequency.heavy.published.unique_heavy_hitter import CodeSign
from frequency.longitudinal.published import DBitFlip
from frequency.marginals.expectation_maximisation import AttributeWise
from frequency.marginals.fourier import Phase
from frequency.marginals.whole_record import Records
from frequency.oracles.unary_encoding import UnaryEncoding
from rangeq import SquareWave
from rangeq.grids.channel import LevelSketch
from rangeq.grids.wavegrid.square_waves import WaveCells
from rangeq.local.circular import Blocks
from rangeq.local.haar import HaarLevel
from rangeq.local.item_sets import Slots
from rangeq.spatial.disk_area import DiskChannel
from rangeq.spatial.likelihood import WavePair
from tests.tape import WORD


def weight(channel, name):
    """A published integer in units of 2^-64."""
    return Fraction(int(channel.parameters[name]), WORD)


def told(channel, right):
    """Randomised response."""
    return weight(channel, "truth" if right else "lie")


def bits_of(packed, width):
    return np.unpackbits(packed, count=width, bitorder="little").tolist()


@singledispatch
def probability(channel, report, item):
    """Pr[report | item]."""
    raise NotImplementedError(type(channel).__name__)


@probability.register
def _(channel: GRR, report, item):
    return told(channel, report["item"] == item)


def unary(channel, bits, own):
    p, q = weight(channel, "p"), weight(channel, "q")
    ones = [p if place == own else q for place in range(len(bits))]
    return prod(one if bit else 1 - one for one, bit in zip(ones, bits, strict=True))


@probability.register
def _(channel: UnaryEncoding, report, item):
    return unary(channel, bits_of(report["bits"], channel.domain), item)


@probability.register
def _(channel: DBitFlip, report, item):
    asked, bits = (bits_of(report[name], channel.domain) for name in ("asked", "bits"))
    assert sum(asked) == channel.asked
    p, q = weight(channel, "p"), weight(channel, "q")
    ones = [p if place == item else q for place in range(channel.domain) if asked[place]]
    told = [bit for bit, mine in zip(bits, asked, strict=True) if mine]
    assert sum(told) == sum(bits)
    each = (one if bit else 1 - one for one, bit in zip(ones, told, strict=True))
    return prod(each) / comb(channel.domain, channel.asked)


@probability.register
def _(channel: SubsetSelection, report, item):
    bits, k, d = bits_of(report["bits"], channel.domain), channel.parameters["size"], channel.domain
    inclusion = weight(channel, "inclusion")
    assert sum(bits) == k
    return inclusion / comb(d - 1, k - 1) if bits[item] else (1 - inclusion) / comb(d - 1, k)


@probability.register
def _(channel: OLH, report, item):
    space = channel._space
    right = space.dot(np.array([int(report["hash"])]), np.array([item]))[0] == report["value"]
    return told(channel, right) / space.size


@probability.register
def _(channel: ProjectiveGeometry, report, item):
    space, (q, t) = channel._space, (channel.parameters["field"], channel.parameters["dimension"])
    hyperplane, point = (
        space.vector(np.array([int(report["hyperplane"])])),
        space.vector(np.array([item])),
    )
    if space.dot(hyperplane, point)[0] == 0:
        return weight(channel, "through") * (q - 1) / (q ** (t - 1) - 1)
    return weight(channel, "beside") * (q - 1) / q ** (t - 1)


@probability.register
def _(channel: AffineSelection, report, item):
    q, accepted = channel.parameters["field"], channel.parameters["accepted"]
    inside = weight(channel, "inside")
    hashed = channel.hashed(np.array([int(report["function"])]), np.array([item]))
    field = channel._space.field
    told = field.add(hashed, field.negative(np.array([int(report["value"])])))[0]
    chance = inside / accepted if told < accepted else (1 - inside) / (q - accepted)
    return chance / channel.functions


def parity(number):
    return int(number).bit_count() & 1


@probability.register
def _(channel: HRR, report, item):
    pairs = list(zip(report["index"].tolist(), report["sign"].tolist(), strict=True))
    right = all(sign == 1 - 2 * parity(index & item) for index, sign in pairs)
    assert len({index for index, _ in pairs}) == len(pairs)
    return told(channel, right) / perm(channel.padded - 1, len(pairs))


@probability.register
def _(channel: HadamardCountMeanSketch, report, item):
    cell = int(channel._hashing.cells_of(np.array([int(report["hash"])]), np.array([item]))[0])
    right = report["sign"] == 1 - 2 * parity(int(report["index"]) & cell)
    return told(channel, right) / (channel.hashes * (channel.width - 1))


@probability.register
def _(channel: CountMeanSketch, report, item):
    cell = int(channel._hashing.cells_of(np.array([int(report["hash"])]), np.array([item]))[0])
    return unary(channel, bits_of(report["bits"], channel.width), cell) / channel.hashes


@probability.register
def _(channel: JLOracle, report, item):
    right = channel.likelihood(report.reshape(1), np.array([item]))[0] == 1
    return told(channel, right) / channel.rows


@probability.register
def _(channel: Tabular, report, item):
    return channel.mechanism.table[report["output"]][item]


@probability.register
def _(channel: CodeSign, report, item):
    fair = Fraction(1, 2 * channel.code.length)
    if item is None:
        return fair
    minus = channel.code.minus(np.array([item], dtype=np.uint64), np.array([int(report["index"])]))
    return told(channel, report["sign"] == 1 - 2 * int(minus[0])) / channel.code.length


@probability.register
def _(channel: Channels, report, item):
    place = Fraction(1, channel.code.length)
    mine = set(channel.channel_of(np.array([item], dtype=np.uint64))[0].tolist())
    result = probability(channel.oracle, report["oracle"], item)
    for k, (index, sign) in enumerate(zip(report["index"], report["sign"], strict=True)):
        minus = channel.code.minus(np.array([item], dtype=np.uint64), np.array([int(index)]))
        right = sign == 1 - 2 * int(minus[0])
        result *= place * (told(channel, right) if k in mine else Fraction(1, 2))
    return result


@probability.register
def _(channel: Phase, report, item):
    shifts = 1 if channel.domain <= 2 else channel.domain
    first = 2 * ((item + int(report["shift"])) % channel.domain) < channel.domain
    return told(channel, report["sign"] == (1 if first else -1)) / shifts


@probability.register
def _(channel: HaarLevel, report, item):
    minus = parity(int(report["index"]) & item >> 1) ^ item & 1
    return told(channel, report["sign"] == 1 - 2 * minus) / (channel.domain // 2)


@probability.register
def _(channel: AttributeWise, report, item):
    given, other = (
        channel.attributes.values(np.array([int(record)]))[0].tolist()
        for record in (report["record"], item)
    )
    lies, truths = channel.parameters["lies"], channel.parameters["truths"]
    chosen = [
        Fraction(int(truth if mine == told else lie), WORD)
        for mine, told, truth, lie in zip(other, given, truths, lies, strict=True)
    ]
    return prod(chosen)


@probability.register
def _(channel: SquareWave, report, item):
    near, far = 2 * channel.parameters["reach"] + 1, weight(channel, "far")
    if 0 <= int(report["output"]) - item < near:
        return (1 - far) / near
    return far / (channel.domain - 1)


@probability.register
def _(channel: Blocks, report, item):
    block = (item + int(report["angle"])) % channel.domain // channel.width
    return probability(channel.base, report["block"], block) / channel.width


@probability.register
def _(channel: WaveCells, report, item):
    records = np.unravel_index(item, tuple(wave.size for wave in channel.waves))
    cell, chance = 0, Fraction(1)
    for wave, asked, value in zip(channel.waves, report["waves"].tolist(), records, strict=True):
        chance *= Fraction(wave.deck.tolist().count(asked), len(wave.deck))
        cell = cell * wave.arcs + int(wave.arc(np.array([asked]), np.array([int(value)]))[0])
    return chance * probability(channel.base, report["cell"], cell)


@probability.register
def _(channel: Slots, report, item):
    kept = channel.parameters["kept"]
    held = [one for one in set(item) if kept is None or one in kept]
    slots = max(len(held), channel.parameters["size"])
    held += [channel.domain] * (slots - len(held))
    return sum(probability(channel.base, report, one) for one in held) / slots


@probability.register
def _(channel: LevelSketch, report, item):
    levels, cell = np.unravel_index(int(report["level"]), channel.levels), 0
    for level, value, widths, hashes in zip(
        levels, item.tolist(), channel.widths, channel.hashes, strict=True
    ):
        cell ^= int(hashes[level][value // widths[level]])
    right = report["sign"] == 1 - 2 * parity(int(report["index"]) & cell)
    return told(channel, right) / (prod(channel.levels) * (channel.width - 1))


@probability.register
def _(channel: Mixture, report, item):
    part = int(report[channel.kind])
    own = channel.parts[part]
    body = report["body"][: own.report_dtype.itemsize].view(own.report_dtype)[0]
    node = int(channel.part_items(part, np.asarray(item)[None])[0])
    return Fraction(channel.part_weights[part], WORD) * probability(own, body, node)


@probability.register
def _(channel: Records, report, item):
    return probability(channel.inner, report, item)


@probability.register
def _(channel: DiskChannel, report, item):
    kernel, reach = channel.kernel.tolist(), channel.reach
    sizes = channel.parameters["sides"]

    def held(output, own):
        apart = [one - other for one, other in zip(output, own, strict=True)]
        return kernel[apart[0]][apart[1]] if all(0 <= a <= 2 * reach for a in apart) else 0

    outputs = np.ndindex(*(size + 2 * reach for size in sizes))
    ever = [output for output in outputs if any(held(output, one) for one in np.ndindex(*sizes))]
    output, far = (int(report["x"]), int(report["y"])), weight(channel, "far")
    assert output in ever
    disk = Fraction(held(output, item.tolist()), sum(map(sum, kernel)))
    return far / len(ever) + (1 - far) * disk


@probability.register
def _(channel: WavePair, report, item):
    parts = []
    for name, wave, own in zip("xy", channel.waves, item.tolist(), strict=True):
        part = np.zeros(1, dtype=wave.report_dtype)
        part["output"] = report[name]
        parts.append(probability(wave, part[0], own))
    return prod(parts)
