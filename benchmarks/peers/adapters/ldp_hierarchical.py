"""ldp-hierarchical-mechanism: ranges over a tree, with clients and servers of pure-ldp."""

from peers.adapters import choice


def ranges(kind, domain, epsilon):
    import numpy as np
    from hierarchical_mechanism_LDP import Private_TreeBary

    branching = choice({"local tree, b = 4": 4}, kind)

    def release(counts):
        values = np.repeat(np.arange(domain), counts)
        tree = Private_TreeBary(domain, branching, epsilon, "unary_encoding", on_all_levels=False)
        tree.update_tree(values)
        tree.post_process()
        return np.diff(tree.cdf[:domain], prepend=0.0) * len(values)

    return release


FEATURES = {
    "import": lambda: __import__("hierarchical_mechanism_LDP"),
    "ranges": lambda: ranges("local tree, b = 4", 64, 1.0)([10] * 64),
}
