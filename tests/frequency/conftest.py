"""A Dask cluster of two processes, for all who count on one."""

import pytest


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    from distributed import Client, LocalCluster  # of an extra, and takes a second to import

    place = str(tmp_path_factory.mktemp("dask"))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=place
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
