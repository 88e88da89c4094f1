import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.errors import ConfigError
from hudi_services.rows.sort_order import SortColumn, from_strategy_params, parse_sort_columns, to_strategy_params

columns = st.lists(
    st.builds(SortColumn, st.from_regex(r"[a-z_.]{1,8}", fullmatch=True), st.booleans(), st.booleans()),
    max_size=4,
    unique_by=lambda column: column.name,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("  ", ()),
        ("a", (SortColumn("a"),)),
        (" a , b DESC ", (SortColumn("a"), SortColumn("b", True, False))),
        ("a desc nulls first,b nulls last", (SortColumn("a", True, True), SortColumn("b", False, False))),
    ],
)
def test_grammar(text: str, expected: tuple[SortColumn, ...]) -> None:
    assert parse_sort_columns(text) == expected


@pytest.mark.parametrize("text", ["a,", ",", "a b", "a desc nulls", "a nulls middle", "a,a desc", "a asc desc"])
def test_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_sort_columns(text)


@given(columns)
def test_a_plan_keeps_the_order_and_hudi_sees_the_names(order: list[SortColumn]) -> None:
    params = to_strategy_params(order)
    assert from_strategy_params(params) == tuple(order)
    names = params.get("hoodie.clustering.plan.strategy.sort.columns", "")
    assert names == ",".join(column.name for column in order)


def test_plain_orders_need_no_key_of_ours() -> None:
    assert set(to_strategy_params([SortColumn("a")])) == {"hoodie.clustering.plan.strategy.sort.columns"}
