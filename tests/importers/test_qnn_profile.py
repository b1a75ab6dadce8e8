"""QNN's profiling CSV: mixed units, names with commas, files that were appended to."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.qnn_profile import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEAD = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
WITH_SOURCES = HEAD.replace("\n", ",ONNX Source Ops\n")


def call(cycles=(6000, 3000), us=800, source="BACKEND"):
    """Return the rows of one call of a graph of two nodes."""
    return (
        f"UNKNOWN,EXECUTE,1100,US,{source},ROOT,QNN (execute) time\n"
        f"UNKNOWN,BACKEND,4,COUNT,{source},SUB-EVENT,Number of HVX threads used\n"
        f"UNKNOWN,BACKEND,1000,US,{source},SUB-EVENT,RPC (execute) time\n"
        f"UNKNOWN,BACKEND,{us},US,{source},SUB-EVENT,Accelerator (execute) time\n"
        f"UNKNOWN,BACKEND,9500,CYCLES,{source},SUB-EVENT,Accelerator (execute) time (cycles)\n"
        f"UNKNOWN,NODE,{cycles[0]},CYCLES,{source},SUB-EVENT,Conv_token_1_2:OpId_7 (cycles)\n"
        f"UNKNOWN,NODE,{cycles[1]},CYCLES,{source},SUB-EVENT,Add:OpId_8 (cycles)\n"
    )


START = "UNKNOWN,INIT,90000,US,BACKEND,ROOT,NULL\nUNKNOWN,FINALIZE,5000,US,BACKEND,ROOT,NULL\n"


class TestConformance(ImporterContract):
    """What every importer keeps to."""

    importer = IMPORTER
    files: ClassVar = {"profile.csv": HEAD + START + call() + call()}
    runs = 0
    delimiter = ","
    repeats_count_once = False


def read(tmp_path, text):
    got = read_text(IMPORTER, tmp_path, text)
    (profile,) = got.profiles
    return got, profile, {o.operator: o for o in profile.operators}


def test_each_row_is_read_in_its_own_unit(tmp_path):
    got, profile, operators = read(tmp_path, HEAD + START + call() + call(us=700))
    conv, add = operators["Conv"], operators["Add"]
    assert (conv.calls, conv.cycles, conv.time_s) == (2, 12000, None)
    assert (add.calls, add.cycles, add.time_s) == (2, 6000, None)
    assert profile.facts == {
        "inferences": 2,
        "sessions": 1,
        "execute_s": pytest.approx(0.0022),
        "rpc_s": pytest.approx(0.002),
        "accelerator_s": pytest.approx(0.0015),
        "accelerator_cycles": 19000,
        "operator_cycles": 18000,
        "hvx_threads": 4,
    }
    assert codes(got) == []
    assert not got.records


def test_nodes_in_microseconds_are_times(tmp_path):
    _, profile, operators = read(tmp_path, HEAD + call().replace("CYCLES", "US"))
    assert operators["Conv"].time_s == pytest.approx(0.006)
    assert operators["Conv"].cycles is None
    assert "operator_cycles" not in profile.facts


def test_a_call_without_a_name_is_the_execution(tmp_path):
    row = "UNKNOWN,EXECUTE,3100,US,BACKEND,ROOT,NULL\n"
    _, profile, _ = read(tmp_path, HEAD + row + row)
    assert profile.facts == {"inferences": 2, "sessions": 1, "execute_s": pytest.approx(0.0062)}


def test_sessions_appended_to_one_file_are_said(tmp_path):
    got, profile, _ = read(tmp_path, HEAD + START + call() + call() + START + call())
    assert profile.facts["sessions"] == 2
    assert codes(got) == ["CL275"]
    assert got.findings[0].line == 18
    got, _, _ = read(tmp_path, HEAD + START + START + call())
    assert codes(got) == [], "two graphs of one session are made before the first call"


def test_the_column_of_source_operators_is_no_part_of_the_name(tmp_path):
    rows = call().replace("\n", ",conv1;relu1\n")
    _, _, operators = read(tmp_path, WITH_SOURCES + rows)
    assert set(operators) == {"Conv", "Add"}


def test_names_may_hold_commas_and_quotes(tmp_path):
    rows = "1,NODE,5,CYCLES,HW,SUB-EVENT,/block,0/Conv:OpId_1 (cycles)\n"
    rows += '1,NODE,7,CYCLES,HW,SUB-EVENT,"Mul:OpId_2 (cycles)"\n'
    got, _, operators = read(tmp_path, HEAD + rows)
    assert {name: o.cycles for name, o in operators.items()} == {"/block,0/Conv": 5, "Mul": 7}
    assert codes(got) == []


@pytest.mark.parametrize(
    "row",
    [
        "1,NODE,5,CYCLES",
        "1,NODE,-5,CYCLES,HW,SUB-EVENT,Add",
        "1,NODE,many,CYCLES,HW,SUB-EVENT,Add",
        "1,NODE,1e60,CYCLES,HW,SUB-EVENT,Add",
        "1,NODE,5,FORTNIGHTS,HW,SUB-EVENT,Add",
    ],
)
def test_a_row_that_cannot_be_is_left_out_and_said(tmp_path, row):
    got, _, operators = read(tmp_path, HEAD + call() + row + "\n")
    assert operators["Add"].calls == 1
    assert (codes(got), got.rows, got.rows_rejected) == (["CL202"], 8, 1)
    assert got.findings[0].line == 9


def test_counts_alone_are_no_profile(tmp_path):
    with pytest.raises(InputFileError, match="no time and no cycles"):
        read_text(IMPORTER, tmp_path, HEAD + "0,ROOT,4,COUNT,HW,ROOT,Number of HVX threads used\n")
