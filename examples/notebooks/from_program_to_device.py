# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a linear program to a device
#
# *A mechanism that was designed on my laptop shall run on devices with no packages at all, in hands
# that I do not know. What exactly is proved, what is drawn there, and what happens when the file
# was tampered with?*
#
# ![On the left the frequencies of the device's answers, which lie on the bars of the exact table
# for three true counts; on the right likelihood ratios of neighbouring counts: those of the file
# within the band that alpha allows, those of a bolder table far outside, up to
# ten](attachment:picture.png)
#
# The chain: program (thesis, sections 6.3 and 6.4) - exact table and proof - file - a sampler of
# the standard library. Each link is checked by the next one.

# %% tags=["hide-input"]
# %matplotlib inline
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from settings import arguments

import mechdesign
from mechdesign import Mechanism, MechanismError, Privacy, design
from mechdesign.losses import L0
from mechdesign.plot import look, mark_numbers, style

full, _ = arguments()  # nothing here needs data

# %% [markdown]
# ## The proof
#
# The solver works in floats and only suggests. Table and multipliers are then computed exactly, and
# by weak duality the multipliers prove that no mechanism with these properties has a smaller loss.
# The objective is a fraction, and the gap is exactly 0.

# %%
n = 8
privacy = Privacy(alpha="3/4")
found = design(n, privacy, L0(), ["WH", "CM"])
mechanism, certificate = found.mechanism, found.certificate
print(certificate)
print(f"objective {certificate.objective}, bound {certificate.bound}, gap {certificate.gap}")

# %% tags=["remove-cell"]
assert certificate.objective == certificate.bound == mechanism.loss(L0())
assert certificate.verify(mechanism)

# %% [markdown]
# The certificate is about this table, and proves nothing of a worse one.

# %%
other = mechdesign.named.explicit_fair(n, "3/4")
verdict = certificate.verify(other)
print(verdict.reason)

# %% tags=["remove-cell"]
assert not verdict

# %% [markdown]
# The audit of privacy needs no proof: it compares every two neighbouring columns, exactly.

# %%
audit = mechanism.audit()
print(audit)

# %% tags=["remove-cell"]
assert audit.holds
assert audit.ratio <= 1 / privacy.alpha

# %% [markdown]
# ## The file
#
# JSON with integers as text: what is loaded is what was proved. `load` trusts nothing and checks
# digest, table, privacy and certificate again.

# %%
folder = Path(tempfile.mkdtemp())
file = folder / "counts-of-8.json"
found.save(file)
content = json.loads(file.read_text())
print({key: str(value)[:60] for key, value in content.items()})

# %% tags=["remove-cell"]
assert Mechanism.load(file) == mechanism

# %% [markdown]
# ## The device
#
# `mechdesign/mechanism/device.py` depends on no other file: copy it beside the mechanism. Here it
# runs in an interpreter that finds no packages (`-I -S`: isolated, without site-packages); numpy
# cannot even be imported there.

# %%
device = folder / "device.py"
shutil.copy(Path(mechdesign.__file__).parent / "mechanism" / "device.py", device)
bare = [sys.executable, "-I", "-S"]
missing = subprocess.run([*bare, "-c", "import numpy"], capture_output=True, text=True, check=False)
print(missing.stderr.splitlines()[-1])

counts = [3, 0, 8, 5]
answer = subprocess.run(
    [*bare, device, file],
    input=" ".join(map(str, counts)),
    capture_output=True,
    text=True,
    check=True,
)
released = [int(count) for count in answer.stdout.split()]  # drawn anew each time

# %% tags=["remove-cell"]
assert missing.returncode != 0
assert len(released) == len(counts)
assert all(0 <= count <= n for count in released)

# %% [markdown]
# ## What is really drawn
#
# The device draws a uniform integer below the table's common denominator, and looks up where it
# falls. So its distribution can be counted, without statistics: feed it every integer once.

# %%
from mechdesign.mechanism.device import Device

truth = 3
integers = iter(range(mechanism.denominator))
sampler = Device(str(file), below=lambda bound: next(integers))
answers = [sampler.release(truth) for _ in range(mechanism.denominator)]
often = [answers.count(i) for i in range(n + 1)]
print(
    f"of {mechanism.denominator} integers, {often} lead to the answers 0 .. {n} when the truth is"
    f" {truth}"
)

# %% tags=["remove-cell"]
assert often == [row[truth] for row in mechanism.weights]

# %% [markdown]
# With real randomness, which a device takes from the operating system: many releases of each count.
# A G-test against the exact table has 72 degrees of freedom and exceeds 160 by chance less than
# once in ten million pages. The same test rejects a device that ignores the truth and guesses once
# in five times.

# %%
draws = 20_000 if full else 4_000
truths = np.repeat(np.arange(n + 1), draws)
answer = subprocess.run(
    [*bare, device, file],
    input=" ".join(map(str, truths)),
    capture_output=True,
    text=True,
    check=True,
)
seen = np.zeros((n + 1, n + 1))
np.add.at(seen, (np.array(answer.stdout.split(), dtype=int), truths), 1)


def g_test(observed: np.ndarray, table: np.ndarray) -> float:
    expected = observed.sum(axis=0) * table
    some = observed > 0
    return float(2 * (observed[some] * np.log(observed[some] / expected[some])).sum())


lazy = 0.8 * mechanism.matrix + 0.2 / (n + 1)
print(
    f"against the table {g_test(seen, mechanism.matrix):.0f}, against the lazy one"
    f" {g_test(seen, lazy):.0f}"
)

# %% tags=["remove-cell"]
assert g_test(seen, mechanism.matrix) < 160 < g_test(seen, lazy)

# %% [markdown]
# ## A file that was changed
#
# Somebody edits the file. Without a new digest, that is an accident and is called so; with one, the
# claims themselves are checked, by the library and by the device. The last change is about quality
# and harms nobody's privacy: only the library, which reads the proof, refuses it.


# %%
def forged(change: dict[str, object], seal: bool = True) -> Path:
    """The file with some entries changed and, if sealed, a digest that fits again."""
    rest = {key: value for key, value in {**content, **change}.items() if key != "digest"}
    digest = hashlib.sha256(
        json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    path = folder / "forged.json"
    path.write_text(
        json.dumps({**rest, "digest": f"sha256:{digest}" if seal else content["digest"]})
    )
    return path


def verdicts(path: Path) -> tuple[str, str]:
    """What the library and the device say, empty if they accept."""
    library = ""
    try:
        Mechanism.load(path)
    except MechanismError as error:
        library = f"{type(error).__name__}: {error}".replace(f"{path}: ", "")
    run = subprocess.run([*bare, device, path, "3"], capture_output=True, text=True, check=False)
    return library, "" if run.returncode == 0 else run.stderr.strip().split(": ", 2)[-1]


# Half of the time the plain truth: a better answer, and no privacy.
honest = mechanism.matrix
weights = [
    [mechanism.denominator * (i == j) + weight for j, weight in enumerate(row)]
    for i, row in enumerate(mechanism.weights)
]
bolder = {
    "weights": [[str(weight) for weight in row] for row in weights],
    "denominator": str(2 * mechanism.denominator),
}
refused = {}
for name, change, seal in (
    ("alpha changed, old digest", {"alpha": "9/10"}, False),
    ("alpha changed, new digest", {"alpha": "9/10"}, True),
    ("a bolder table, new digest", bolder, True),
    (
        "a better bound, new digest",
        {"certificate": {**content["certificate"], "bound": "1/2"}},
        True,
    ),
):
    library, on_device = refused[name] = verdicts(forged(change, seal))
    print(
        f"{name}\n  library: {library[:110]}\n  device: "
        f" {on_device[:110] or 'accepted, with the privacy that it claims'}"
    )

# %% tags=["remove-cell"]
for name, (library, on_device) in refused.items():
    assert library
    assert bool(on_device) == ("bound" not in name)
assert verdicts(file) == ("", "")

# %% [markdown]
# A digest is no signature: whoever can write the file can also write another honest one, with a
# larger epsilon. Sign what crosses a boundary of trust, and pin the alpha that you expect.

# %% tags=["remove-cell"]
assert Mechanism.load(file).privacy == privacy

# %% [markdown]
# ## From end to end
#
# Left: what the device answered, and the exact table. Right: the likelihood ratio of every answer
# between neighbouring counts, as the audit sees them: those of the file stay in the band that alpha
# allows, and the bolder table leaves it.

# %% tags=["hide-input", "picture"]
with style():
    fig = Figure(figsize=(10, 4))
    left, right = fig.subplots(1, 2)
    for place, count in enumerate((0, 3, 8)):
        x = np.arange(n + 1) + 0.27 * (place - 1)
        error = 3 * np.sqrt(honest[:, count] * (1 - honest[:, count]) / draws)
        own = {"color": look(place)["color"], "hatch": ("", "///", "...")[place], "alpha": 0.45}
        left.bar(x, honest[:, count], 0.27, **own, label=f"truth {count}: exact")
        left.errorbar(x, seen[:, count] / draws, error, fmt="k.", markersize=4, elinewidth=1)
    left.errorbar([], [], [], fmt="k.", label=f"device, {draws} draws, 3 standard errors")
    left.set(xlabel="answer", ylabel="probability", xticks=range(n + 1), ylim=(0, 0.48))
    left.legend()

    tables = {
        "the file": (honest, "o"),
        "the bolder table": ((honest + np.eye(n + 1)) / 2, "x"),
    }
    inside = {}
    right.axhspan(
        float(privacy.alpha),
        1 / float(privacy.alpha),
        color="0.9",
        label="allowed: alpha to 1 / alpha",
    )
    for series, (name, (table, marker)) in enumerate(tables.items()):
        ratios = table[:, :-1] / table[:, 1:]
        least, most = float(privacy.alpha) - 1e-12, 1 / float(privacy.alpha) + 1e-12
        inside[name] = ((ratios >= least) & (ratios <= most)).all()
        place = np.repeat(np.arange(n + 1), n) + 0.2 * series - 0.1
        right.semilogy(place, ratios.ravel(), marker, color=look(series)["color"], label=name)
    right.set(
        xlabel="answer",
        ylabel="its likelihood ratio between neighbouring counts",
        xticks=range(n + 1),
        ylim=(0.05, 90),
    )
    mark_numbers(right.yaxis, logarithmic=True)
    right.legend(loc="upper left")
fig

# %% tags=["remove-cell"]
shutil.rmtree(folder)
assert inside == {"the file": True, "the bolder table": False}
