"""What the benchmark computes and writes, without measuring anything."""

import pytest

from bench import figures, report


def test_percentiles_are_values_that_were_measured():
    values = list(range(1, 201))
    assert figures.median(values) == 100
    assert figures.p99(values) == 198
    assert figures.percentile(values, 1) == 200
    assert figures.percentile([7], 0.01) == 7
    assert figures.median([3, 1, 2]) == 2
    with pytest.raises(ValueError):
        figures.median([])


def test_ratios_are_those_of_neighbours():
    assert figures.ratios([2, 9], [1, 3]) == [2, 3]
    assert figures.ratios([2, 9], [0, 3]) == [3]  # a window in which the peer did nothing
    with pytest.raises(ValueError):
        figures.ratios([1, 2], [1])


def test_lines_are_split_by_target():
    assert figures.split(["0 1.5", "1 2", "0 3"]) == {0: [1.5, 3.0], 1: [2.0]}
    assert figures.split([]) == {}


@pytest.mark.parametrize("value, text", [
    (0, "0"), (1.2345, "1.23"), (12.345, "12.3"), (1234.5, "1234"), (0.012345, "0.0123"),
    (2.0, "2"), (-3.456, "-3.46"), (100, "100"), (float("inf"), "inf")])
def test_numbers_have_three_digits(value, text):
    assert figures.number(value) == text


def test_a_goal_is_met_up_to_its_limit():
    assert figures.at_most("a", "", "", 1.25, 1.25).verdict == "met"
    assert figures.at_most("a", "", "", 1.26, 1.25).verdict == "MISSED"
    assert figures.at_least("a", "", "", 0.9, 0.9).verdict == "met"
    assert figures.at_least("a", "", "", 0.89, 0.9).verdict == "MISSED"
    assert figures.at_least("a", "", "", 0, 0.9).verdict == "MISSED"
    assert figures.told("a", "1").verdict == "-"
    assert figures.skipped("a", "no etcd here").verdict == "skipped"


def test_the_share_is_how_much_of_the_goal_is_used_up():
    assert figures.at_most("a", "", "", 5, 10).share == 0.5
    assert figures.at_least("a", "", "", 1.8, 0.9).share == 0.5


def test_the_table_has_a_line_for_each_row():
    rows = [figures.at_most("a|b", "1 ms", "2 ms", 0.5, 1), figures.skipped("c", "no etcd here")]
    lines = report.markdown(rows, "here").splitlines()
    assert lines[0] == "here"
    assert lines[-2] == "| a\\|b | 1 ms | 2 ms | 0.5 × | ≤ 1 × | met |"
    assert "skipped: no etcd here" in lines[-1]


def test_the_plot_has_a_bar_for_each_row_with_a_goal():
    rows = [figures.at_most("a<b", "", "", 1, 2), figures.at_most("far", "", "", 90, 2),
            figures.told("t", ""), figures.skipped("s", "")]
    text = report.svg(rows, "here")
    assert text.count("<rect") == 3  # and the ground
    assert "a&lt;b" in text and "<b" not in text
    widths = [float(w.split('"')[0]) for w in text.split('width="')[2:]]
    assert widths == [report.RIGHT / 4, report.RIGHT]  # what is too far out ends at the edge
