"""pure-ldp: clients and servers for one user a call. Items count from 1, unless another mapping is
given.
"""

from peers.adapters import choice


def identity(index):
    return index


class Pair:
    def __init__(self, client, server, domain, keep=lambda report: report):
        self.client, self.server, self.domain, self.keep = client, server, domain, keep

    def privatize(self, values):
        privatise, keep = self.client.privatise, self.keep
        return [keep(privatise(value)) for value in values]

    def estimate(self, reports):
        self.server.reset()
        self.server.aggregate_all(reports)
        n = len(reports)
        return [
            value / n
            for value in self.server.estimate_all(range(self.domain), suppress_warnings=True)
        ]


def oracle(kind, domain, epsilon):
    import pure_ldp.frequency_oracles as pure

    def pair(name, keep=lambda report: report, **options):
        client, server = (
            getattr(pure, f"{name}{side}")(epsilon, domain, index_mapper=identity, **options)
            for side in ("Client", "Server")
        )
        return Pair(client, server, domain, keep)

    def sketch(hadamard):
        server = pure.CMSServer(epsilon, 64, 1024, is_hadamard=hadamard)
        return Pair(
            pure.CMSClient(epsilon, server.get_hash_funcs(), 1024, is_hadamard=hadamard),
            server,
            domain,
        )

    def fast_hashing():
        # The documentation's faster variant: hash functions from a list of k, whose values are
        # tabulated by the server.
        client = pure.FastLHClient(epsilon, domain, 1000, use_olh=True, index_mapper=identity)
        return Pair(
            client,
            pure.FastLHServer(epsilon, domain, 1000, use_olh=True, index_mapper=identity),
            domain,
        )

    made = {
        "GRR": lambda: pair("DE"),
        "OUE": lambda: pair("UE", use_oue=True),
        "SUE": lambda: pair("UE", use_oue=False),
        "OLH": lambda: pair("LH", use_olh=True),
        "OLH, 1000 hash functions": fast_hashing,
        # A report can be an iterator, that can be read once
        "HRR": lambda: pair("HadamardMech", tuple, t=1),
        "CMS": lambda: sketch(False),
        "HCMS": lambda: sketch(True),
    }
    return choice(made, kind)()


class Finder:
    def __init__(self, client, server, bits):
        self.client, self.server, self.bits = client, server, bits

    def privatize(self, values):
        privatise, bits = self.client.privatise, self.bits
        return [privatise(format(value, f"0{bits}b")) for value in values]

    def find(self, reports, k):
        for report in reports:
            self.server.aggregate(report)
        items, frequencies = self.server.find_heavy_hitters(k=k)
        ordered = sorted(zip(frequencies, items, strict=True), reverse=True)
        return [int(item, 2) for _, item in ordered if "*" not in item]  # padding: no item


def heavy(kind, bits, epsilon):
    import pure_ldp.frequency_oracles as pure
    import pure_ldp.heavy_hitters as hitters

    def sketches(hashes):
        # Local hashing, the default, tries every item for every report; the sketch is the library's
        # fast alternative.
        server = pure.CMSServer(epsilon, hashes, 1024, is_hadamard=True)
        return server, pure.CMSClient(epsilon, server.get_hash_funcs(), 1024, is_hadamard=True)

    def pem():
        server, client = sketches(128)
        return Finder(
            hitters.PEMClient(epsilon, 6, bits, 5, fo_client=client),
            hitters.PEMServer(epsilon, 6, bits, 5, fo_server=server),
            bits,
        )

    def treehist():
        server, client = sketches(128)
        return Finder(
            hitters.TreeHistClient(epsilon, 4, bits, fo_client=client),
            hitters.TreeHistServer(epsilon, bits, 4, fo_server=server),
            bits,
        )

    def sfp():
        server, client = sketches(16)
        return Finder(
            hitters.SFPClient(epsilon, 4, bits, alphabet={"0", "1"}, fo_client=client),
            hitters.SFPServer(epsilon, 4, bits, alphabet={"0", "1"}, fo_server=server),
            bits,
        )

    return choice({"PEM": pem, "TreeHist": treehist, "SFP": sfp}, kind)()


def _refused():
    counts = oracle("GRR", 64, 1.0).estimate([-1] * 1000)
    return "counted as the last item" if max(counts) == counts[-1] else "ignored"


def _randomness():
    import random

    import numpy as np

    def reports():
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  theirs
        return oracle("GRR", 64, 1.0).privatize([1] * 50), oracle("OLH", 64, 1.0).privatize(
            [1] * 50
        )

    return (
        "Mersenne twisters: someone who knows the seed knows the reports"
        if reports() == reports()
        else "not seeded"
    )


PROBES = {"a report that cannot be": _refused, "randomness": _randomness}

FEATURES = {
    "import": lambda: __import__("pure_ldp"),
    "frequency oracles": lambda: __import__("pure_ldp.frequency_oracles"),
    "local hashing": lambda: oracle("OLH", 64, 1.0).privatize([1, 2, 3]),
    "sketches": lambda: oracle("HCMS", 64, 1.0).privatize([1, 2, 3]),
    "heavy hitters": lambda: heavy("PEM", 16, 3.0).privatize([1, 2, 3]),
}
