"""What a command says of its own work."""

import pytest

from carbonlens.errors import MeasurementError
from carbonlens.instrument import bench_result
from carbonlens.metering.recorder import Recorder


def recorded(text):
    recorder = Recorder()
    told = bench_result.record(bench_result.parse(text, "here"), recorder, where="here")
    return told, recorder.final_facts(lambda outcomes: f"{sum(outcomes)} of {len(outcomes)}")


def test_all_keys():
    text = """{"units": 20000, "latencies_ms": [1, 2, 3],
               "quality": {"accuracy": {"outcomes": [1, 1, 0]}, "loss": {"value": 0.5, "n": 10,
               "higher_is_better": false}}}"""
    told, facts = recorded(text)
    assert told
    assert facts.units == 20000
    assert facts.latency.n == 3
    by_name = {q.name: q for q in facts.quality}
    assert (by_name["accuracy"].n, by_name["accuracy"].outcomes_sha256) == (3, "2 of 3")
    assert (by_name["loss"].value, by_name["loss"].higher_is_better) == (0.5, False)


def test_qualities_alone():
    told, facts = recorded('{"accuracy": 0.97}')
    assert not told
    assert facts.quality[0].value == 0.97


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("accuracy", True),
        ("loss", False),
        ("word_error_rate", False),
        ("score", None),
        ("accuracy_loss", None),
    ],
)
def test_a_bare_quality_has_the_direction_of_its_name_or_none(name, better):
    for said in ("0.5", '{"value": 0.5, "n": 10}'):
        _, facts = recorded(f'{{"quality": {{"{name}": {said}}}}}')
        assert facts.quality[0].higher_is_better is better


@pytest.mark.parametrize(("said", "better"), [("true", True), ("false", False), ("null", None)])
def test_a_stated_direction_counts(said, better):
    _, facts = recorded(f'{{"loss": {{"value": 1, "higher_is_better": {said}}}}}')
    assert facts.quality[0].higher_is_better is better
    with pytest.raises(MeasurementError, match="higher_is_better"):
        recorded('{"loss": {"value": 1, "higher_is_better": "false"}}')


def test_right_answers_are_better_than_wrong_ones():
    _, facts = recorded('{"agreement": {"outcomes": [1, 0]}, "error": {"outcomes": [1, 0]}}')
    assert [q.higher_is_better for q in facts.quality] == [True, False]


def test_numbers_of_numpy_are_taken_as_track_takes_them():
    np = pytest.importorskip("numpy", reason="numpy is of an extra that is not installed")
    recorder = Recorder()
    quality = {
        "accuracy": np.float32(0.5),
        "loss": {"value": np.float64(0.25), "n": np.int64(4), "higher_is_better": np.bool_(False)},
        "f1": np.array(0.75),
    }
    bench_result.record({"quality": quality}, recorder, where="here")
    facts = recorder.final_facts(lambda outcomes: None)
    assert facts.findings == ()
    assert [(q.name, q.value, q.n) for q in facts.quality] == [
        ("accuracy", 0.5, None),
        ("loss", 0.25, 4),
        ("f1", 0.75, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "accuracy: 0.97",
        "[1]",
        "3",
        '{"quality": 3}',
        '{"accuracy": "high"}',
        '{"accuracy": true}',
        "\xff",
    ],
)
def test_anything_else_is_refused_with_a_mend(text):
    with pytest.raises(MeasurementError) as refused:
        recorded(text)
    assert "accuracy" in refused.value.mend


def test_a_file_that_was_not_written_says_nothing(tmp_path):
    assert bench_result.read(tmp_path / "none") == {}
    (tmp_path / "empty").touch()
    assert bench_result.read(tmp_path / "empty") == {}


@pytest.mark.parametrize(
    ("text", "named", "kept"),
    [
        ('{"unit": 5}', ["'unit'"], []),
        ('{"Units": 5}', ["'Units'"], []),
        ('{"units": 5, "latency_ms": [1]}', ["'latency_ms'"], []),
        ('{"quality": {"f1": 0.5}, "accuracy": 0.9}', ["'accuracy'"], ["f1"]),
        (
            '{"accuracy": 0.9, "latencies_s": [1], "qualities": {}}',
            ["'latencies_s'", "'qualities'"],
            ["accuracy"],
        ),
        ('{"units": 5, "a": 1, "b": 2, "c": 3, "d": 4}', ["5", "'a', 'b', 'c' and 1 more"], []),
    ],
)
def test_a_key_that_is_none_is_named_and_counts_nowhere(text, named, kept):
    told, facts = recorded(text)
    assert told is ("units" in text.split(":")[0])
    (finding,) = facts.findings
    assert finding.severity == "warning"
    assert "latencies_ms, quality, units" in finding.mend
    assert all(name in finding.message or name == "5" for name in named)
    assert [q.name for q in facts.quality] == kept


@pytest.mark.parametrize("name", ["latency_ms", "unit", "united", "quality_score", "latency_p99_ms"])
def test_a_quality_may_have_any_name_where_it_is_said_to_be_one(name):
    _, facts = recorded(f'{{"quality": {{"{name}": 0.5}}}}')
    assert [q.name for q in facts.quality] == [name]
    assert facts.findings == ()


@pytest.mark.parametrize("name", ["united", "quality_score", "latency_p99_ms", "unit_test_pass_rate"])
def test_a_quality_alone_that_only_begins_like_a_key_is_one(name):
    _, facts = recorded(f'{{"{name}": 0.5}}')
    assert [q.name for q in facts.quality] == [name]


@pytest.mark.parametrize("latencies", ['"x"', "[null]", "3"])
def test_wrong_latencies_are_a_finding(latencies):
    _, facts = recorded(f'{{"latencies_ms": {latencies}}}')
    assert facts.findings


@pytest.mark.parametrize("units", ["0", "-3", '"many"', "true", "[1]", "1e999"])
def test_a_number_of_units_that_is_none_is_refused_at_once(units):
    with pytest.raises(MeasurementError, match=r"units|JSON"):
        recorded(f'{{"units": {units}}}')
