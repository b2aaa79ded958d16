"""One suite of tests for each abstract class: every implementation inherits it."""

import pytest

pytest.register_assert_rewrite("tests.contracts.oracle")
