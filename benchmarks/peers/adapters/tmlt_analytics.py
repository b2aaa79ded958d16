"""tmlt.analytics (Tumult): queries in sessions of Spark, which needs Java."""

import os
import sys
import tempfile


def counts():
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else Spark starts the first Python of the path
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1")
    spark = spark.config("spark.sql.warehouse.dir", tempfile.mkdtemp())
    spark = spark.config("spark.ui.enabled", "false").getOrCreate()
    people = spark.createDataFrame(pd.DataFrame({"town": ["a"] * 50 + ["b"] * 50}))
    session = Session.from_dataframe(PureDPBudget(1), "people", people, AddOneRow())
    asked = QueryBuilder("people").groupby(KeySet.from_dict({"town": ["a", "b"]})).count()
    return session.evaluate(asked, PureDPBudget(1)).collect()


FEATURES = {"import": lambda: __import__("tmlt.analytics"), "counts by groups": counts}
