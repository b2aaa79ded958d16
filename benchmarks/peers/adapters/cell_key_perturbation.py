"""cell_key_perturbation (Office for National Statistics): tables by the method of cell keys."""


def perturbed():
    """A table of one cell, with a perturbation table that has no noise."""
    import pandas as pd
    from cell_key_perturbation.create_perturbed_table import create_perturbed_table

    cells = [(count, key, 0) for count in range(1, 751) for key in range(256)]
    noise = pd.DataFrame(cells, columns=["pcv", "ckey", "pvalue"])
    people = pd.DataFrame({"town": ["a"] * 12, "key": [*range(244, 256)]})
    return create_perturbed_table(
        data=people, ptable=noise, geog=[], tab_vars=["town"], record_key="key"
    )


FEATURES = {
    "import": lambda: __import__("cell_key_perturbation.create_perturbed_table"),
    "perturbed tables": perturbed,
}
