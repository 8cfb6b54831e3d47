"""benchmarks/trust/table.py: verdicts, rates with their intervals, and tables from a CSV."""

import math

import pytest
from benchmarks.processes import read_rows, write_rows
from benchmarks.trust import table
from scipy.stats import binomtest


def row(**changed):
    return {
        "sampler": "temperance",
        "case": "3",
        "name": "funnel-3",
        "family": "funnel",
        "dimension": 4.0,
        "probability": 0.3,
        "exact_probability": 0.3,
        "log_z": 1.0,
        "exact_log_z": 1.0,
        "num_warnings": 0.0,
        "warnings": "",
        "cpu_s": 2.0,
        "versions": "one 1.0",
        "machine": "a machine",
        "failure": "",
    } | changed


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, (False, False, False)),
        ({"num_warnings": 2.0}, (False, False, True)),
        ({"num_warnings": math.nan}, (False, False, False)),
        ({"probability": 0.401}, (True, True, False)),
        ({"probability": 0.199, "num_warnings": 1.0}, (True, False, False)),
        ({"probability": 0.399}, (False, False, False)),
        ({"probability": math.nan}, (True, True, False)),
        ({"log_z": 1.26}, (True, True, False)),
        ({"log_z": 0.74, "num_warnings": math.nan}, (True, True, False)),
        ({"log_z": 0.76}, (False, False, False)),
        ({"log_z": math.nan}, (False, False, False)),
        ({"log_z": -math.inf}, (True, True, False)),
    ],
)
def test_verdicts(changed, verdict):
    one = row(**changed)
    assert (table.wrong(one), table.silent(one), table.alarmed(one)) == verdict


@pytest.mark.parametrize(("count", "of"), [(0, 200), (1, 200), (8, 200), (30, 30), (3, 7)])
def test_intervals_are_clopper_and_pearsons(count, of):
    wanted = binomtest(count, of).proportion_ci(0.95, method="exact")
    assert table.interval(count, of) == pytest.approx((wanted.low, wanted.high))


def test_rates_and_failures_are_counted_apart():
    rows = [
        row(),
        row(case="13", probability=0.9),
        row(case="23", num_warnings=1.0),
        row(case="33", failure="it fell", probability=math.nan),
    ]
    wanted = {"ended": 3, "wrong": 1, "silent": 1, "alarmed": 1, "right": 2, "failed": 1}
    assert table.counts(rows) == wanted
    _, ((_, wrong, silent, alarmed, failed, *_),) = table.in_all(rows)
    assert (wrong.split(" (")[0], silent.split(" (")[0]) == ("1 of 3", "1 of 3")
    assert (alarmed.split(" (")[0], failed) == ("1 of 2", 1)


def test_cost_is_compared_on_the_cases_that_both_ended():
    former = [row(sampler="former", cpu_s=4.0), row(sampler="former", case="13", failure="late")]
    mine = [row(cpu_s=2.0), row(case="13", cpu_s=100.0)]
    assert table.ratio(mine, former) == "0.50"
    assert table.ratio(mine, []) == ""


def test_the_page_is_made_from_the_csv_alone(tmp_path):
    rows = [
        row(),
        row(case="13", name="funnel-13", probability=0.9, warnings="one | two", num_warnings=2),
        row(sampler="dynesty_nested", failure="stopped after 3 s", num_warnings=None),
        row(case="table-0-0", name="two widths", family="table", log_z=math.nan),
    ]
    path = tmp_path / "trust.csv"
    write_rows(path, table.COLUMNS, rows)
    page = table.markdown(read_rows(path, table.NUMBERS))
    assert page == table.markdown(rows)
    for words in ("stopped after 3 s", "funnel-13", r"one \| two", "two widths", "a machine"):
        assert words in page
