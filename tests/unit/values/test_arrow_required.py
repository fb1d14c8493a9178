"""Without pyarrow each module of values either comes or says what to install."""

from tests.unit.spark.test_spark_required import imported


def test_a_module_of_values_says_that_it_needs_pyarrow_where_that_is_not_installed():
    told = imported("pyarrow", "values")
    assert told["headrace.values.value_decoder"] == "this needs pyarrow: pip install 'headrace[arrow]'"
    assert "headrace.values.value_format" not in told
