"""smartnoise-sql: answers to SQL; its noise is that of an older OpenDP."""


def reader():
    import pandas as pd
    import snsql

    people = pd.DataFrame({"town": ["a"] * 50 + ["b"] * 50})
    table = {"row_privacy": True, "rows": 100, "town": {"type": "string"}}
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    return snsql.from_df(people, privacy=privacy, metadata={"": {"d": {"t": table}}})


ASKED = "SELECT town, COUNT(*) AS n FROM d.t GROUP BY town"


def _privacy():
    epsilon, delta = reader().get_privacy_cost(ASKED)
    return f"a count by groups, asked for 1 and 1e-6: epsilon {epsilon:g}, delta {delta:.2g}"


PROBES = {"privacy of what runs": _privacy}

FEATURES = {
    "import": lambda: __import__("snsql"),
    "counts by groups": lambda: reader().execute(ASKED),
}
