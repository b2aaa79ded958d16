import pytest

# Say what was compared when an assertion of the contract fails, as in the tests themselves.
pytest.register_assert_rewrite("tests.rangeq.contract")
