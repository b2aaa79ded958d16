"""PipelineDP: counts and sums by keys, in pipelines of Beam, Spark or plain Python."""


def counts():
    """The number of people of two keys, by its engine in plain Python."""
    import pipeline_dp

    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    asked = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.COUNT],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
    )
    columns = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: 0,
    )
    rows = [(person, "ab"[person % 2]) for person in range(100)]
    released = engine.aggregate(rows, asked, columns, public_partitions=["a", "b"])
    accountant.compute_budgets()
    return list(released)


FEATURES = {"import": lambda: __import__("pipeline_dp"), "counts by groups": counts}
