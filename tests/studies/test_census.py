"""The tables of studies/subsample_annealing: the law of the census, and the real ones as read."""

import gzip
import itertools

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.studies.study_parts import STUDIES, part_of

STUDY = STUDIES / "subsample_annealing"
part = part_of(STUDY)


@pytest.fixture
def small(part):
    """Two views over four columns, and every row that there can be."""
    law = part("census").census(3, shape=((3, 3), (1, 2)), num_values=(3, 2, 4, 2), num_rare=1)
    rows = np.array(list(itertools.product(*map(range, law.num_values))), np.uint8)
    return law, rows


def by_hand(law, row):
    """The sum over every choice of clusters, written out."""
    total = 0.0
    for clusters in itertools.product(*(range(len(view.mass)) for view in law.views)):
        term = 1.0
        for view, k in zip(law.views, clusters, strict=True):
            term *= view.mass[k]
            for column, probs in zip(view.columns, view.probs, strict=True):
                term *= probs[k, row[column]]
        total += term
    return np.log(total)


def test_the_oracle_is_the_sum_over_clusters(small):
    law, rows = small
    found = law.log_prob(rows)
    np.testing.assert_allclose(found, [by_hand(law, row) for row in rows], rtol=1e-12)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


def test_frequencies_are_the_oracles_and_of_no_other_law(part, small, seed):
    law, rows = small
    drawn = law.draw(200_000, seed)
    place = {tuple(row): i for i, row in enumerate(rows.tolist())}
    unique, counts = np.unique(drawn, axis=0, return_counts=True)
    observed = np.zeros(len(rows))
    observed[[place[tuple(row)] for row in unique.tolist()]] = counts

    def p_value(log_prob):
        expected = len(drawn) * np.exp(log_prob)
        few = expected < 10
        merged = [np.append(x[~few], x[few].sum()) for x in (observed, expected)]
        return chisquare(*([x[:-1] for x in merged] if not few.any() else merged)).pvalue

    assert p_value(law.log_prob(rows)) > 1e-4
    # Columns taken one by one, as if no view held two of them.
    alone = np.zeros(len(rows))
    for column, num in enumerate(law.num_values):
        shares = np.bincount(drawn[:, column], minlength=num) / len(drawn)
        alone += np.log(shares[rows[:, column]])
    assert p_value(alone) < 1e-12


def test_clusters_have_their_masses(part, seed):
    law = part("census").census(0)
    num = 100_000
    clusters = law.draw_clusters(num, seed)
    for view, drawn in zip(law.views, clusters.T, strict=True):
        counts = np.bincount(drawn, minlength=len(view.mass))
        assert view.mass.sum() == pytest.approx(1, abs=1e-12)
        assert np.all(np.abs(counts - num * view.mass) < 6 * np.sqrt(num * view.mass) + 1)


def test_a_seed_names_a_table_and_a_short_one_begins_a_long_one(part):
    census = part("census")
    law = census.census(5)
    assert sorted(c for view in law.views for c in view.columns) == list(range(68))
    assert len(law.views[0].mass) == 33
    long = law.draw(census.BLOCK + 5000, 7)
    assert long.dtype == np.uint8
    assert np.array_equal(long[:3000], census.census(5).draw(3000, 7))
    assert np.array_equal(long[: census.BLOCK + 10], law.draw(census.BLOCK + 10, 7))
    assert not np.array_equal(long[:3000], law.draw(3000, 8))
    assert np.all(long.max(0) < np.array(law.num_values))
    assert len(part("census").census(0, census.ONE_VIEW).views) == 1


def test_columns_of_a_view_depend_and_those_of_two_do_not(part, seed):
    law = part("census").census(0)
    rows = law.draw(20_000, seed)

    def excess(i, j):
        """Mutual information in nats, less what chance alone would show."""
        joint = np.zeros((law.num_values[i], law.num_values[j]))
        np.add.at(joint, (rows[:, i], rows[:, j]), 1 / len(rows))
        apart = joint.sum(1, keepdims=True) * joint.sum(0)
        some = joint > 0
        return (joint[some] * np.log(joint[some] / apart[some])).sum() - joint.size / (2 * 20_000)

    first, second = law.views[0].columns, law.views[1].columns
    within = np.mean([excess(i, j) for i, j in itertools.combinations(first[:8], 2)])
    between = np.mean([excess(i, j) for i in first[:8] for j in second[:8]])
    assert within > 0.01
    assert abs(between) < 0.001


def test_the_real_tables_are_read_as_described(part, tmp_path):
    tables = part("tables")
    (tmp_path / "tables").mkdir()
    (tmp_path / tables.HOSPITAL).write_text("NAME,A,B\nx,1,2\ny,3,2.5\nz,5,9\n")
    frame = tables.read_hospital(tmp_path)
    assert list(frame) == ["A", "B"]
    np.testing.assert_allclose(frame.to_numpy().std(0), 1)
    assert tables.hospital_kinds(tmp_path) == {"A": "real", "B": "real"}
    line = "0,tcp,http,SF,181,5450," + "0," * 32 + "0.00,0.00,0.00,normal.\n"
    assert line.count(",") == 41
    with gzip.open(tmp_path / tables.KDD, "wt") as file:
        file.write("".join(line.replace("181", str(i)) for i in range(20)))
    assert len(tables.KDD_KINDS) == 41
    log = tables.read_kdd(tmp_path)
    assert list(log) == list(tables.KDD_KINDS)
    assert tables.read_kdd(tmp_path, label=True)["label"].iloc[0] == "normal."
    some = tables.read_kdd(tmp_path, 5, seed=1)
    assert some["src_bytes"].nunique() == 5
    assert some.equals(tables.read_kdd(tmp_path, 5, seed=1))
    learn, score = tables.split_rows(20, seed=0)
    assert (len(learn), len(score)) == (18, 2)
    assert sorted([*learn, *score]) == list(range(20))
