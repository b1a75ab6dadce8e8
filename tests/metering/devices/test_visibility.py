"""Which GPUs the work may use: the rules of CUDA and HIP, and the cases other tools get wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.metering.devices.visibility import (
    ALLOTTED,
    CONTAINER,
    CUDA,
    Device,
    Instance,
    Pick,
    amd_visible,
    picks,
    visible,
)

UUIDS = [f"GPU-{c * 8}-1111-2222-3333-444455556666" for c in "abcdef01"]
EIGHT = [Device(uuid=u, name="H100", minor=k) for k, u in enumerate(UUIDS)]
TEN_AND_MORE = [Device(uuid=f"GPU-{k:08d}", minor=k) for k in range(16)]
HALVES = Device(
    uuid="GPU-99999999-1111",
    divided=True,
    instances=(
        Instance(uuid="MIG-11111111-aaaa", gpu_instance=1, compute_instance=0, part=3 / 7),
        Instance(uuid="MIG-22222222-bbbb", gpu_instance=2, compute_instance=0, part=4 / 7),
    ),
)


def places(environ, devices=EIGHT):
    return [p.device for p in visible(environ, devices).picks]


def cuda(text, devices=EIGHT):
    return places({"CUDA_VISIBLE_DEVICES": text}, devices)


def codes(environ, devices=EIGHT):
    return [f.code for f in visible(environ, devices).findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", [0]),
        ("2,3", [2, 3]),
        (" 3 , 1 ", [3, 1]),
        ("", []),
        ("   ", []),
        ("-1", []),
        ("0,-1,2", [0]),
        ("0,1,8,2", [0, 1]),
        ("0,x,2", [0]),
        ("NoDevFiles", []),
        ("1,2,1", []),
        ("1gpu,2", [1, 2]),
        ("0,,1", [0]),
        ("99999999999999999999", []),
        (UUIDS[1], [1]),
        (f"{UUIDS[5]},{UUIDS[0]}", [5, 0]),
        ("GPU-bbbb", [1]),
        ("GPU-", []),
        ("GPU-bbbb,GPU-zzzz,GPU-aaaa", [1]),
        ("GPU-bbbb,0", [1]),
        ("0,GPU-bbbb", [0]),
        ("GPU-bbbb,GPU-bbbbbbbb", []),
    ],
)
def test_a_list_chooses_as_cuda_reads_it(text, expected):
    assert cuda(text) == expected


def test_unset_means_all_and_nothing_else_is_said():
    assert visible({}, EIGHT).picks == tuple(Pick(k) for k in range(8))
    assert codes({}) == []


def test_codecarbon_567_a_job_with_one_of_eight_gpus_is_billed_one():
    assert cuda("3") == [3]
    assert places({"SLURM_JOB_GPUS": "5"}) == [5]


def test_codecarbon_the_second_look_at_a_hidden_node_still_sees_nothing():
    assert cuda("-1") == []
    assert cuda("-1") == []


def test_zeus_109_a_mig_name_is_no_number():
    found = visible({"CUDA_VISIBLE_DEVICES": "MIG-22222222-bbbb"}, [*EIGHT[:2], HALVES])
    assert found.picks == (Pick(2, 1),)


def test_zeus_a_uuid_is_no_number():
    assert cuda(UUIDS[7]) == [7]


def test_codecarbon_the_g_of_a_mig_name_is_not_eaten():
    text = "MIG-GPU-99999999-1111/2/0"
    assert visible({"CUDA_VISIBLE_DEVICES": text}, [HALVES]).picks == (Pick(0, 1),)


def test_perun_the_tenth_gpu_is_not_the_first():
    assert cuda("10", TEN_AND_MORE) == [10]
    assert cuda("11,1", TEN_AND_MORE) == [11, 1]


def test_an_instance_that_is_not_shown_stands_for_its_gpu_and_never_for_nothing():
    hidden = Device(uuid="GPU-99999999-1111", divided=True)
    assert picks("MIG-33333333-cccc", [EIGHT[0], hidden]) == (Pick(1),)
    assert picks("MIG-GPU-99999999-1111/7/0", [HALVES]) == (Pick(0),)
    assert picks("MIG-33333333-cccc", [EIGHT[0]]) == ()


def test_two_instances_of_one_gpu():
    assert picks("MIG-1,MIG-2", [HALVES]) == (Pick(0, 0), Pick(0, 1))


def test_a_list_that_names_nothing_is_said():
    assert codes({"CUDA_VISIBLE_DEVICES": "GPU-zzzz"}) == ["CL133"]
    assert codes({"CUDA_VISIBLE_DEVICES": "1,1"}) == ["CL133"]
    assert codes({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert codes({"CUDA_VISIBLE_DEVICES": "-1"}) == []


@pytest.mark.parametrize("text", ["all", "", "none", "void", "0,1,2,3,4,5,6,7"])
def test_a_container_that_is_given_all_or_says_nothing_limits_nothing(text):
    assert places({"NVIDIA_VISIBLE_DEVICES": text}) == list(range(8))


def test_a_container_shows_the_devices_it_was_given_under_new_numbers():
    assert places({"NVIDIA_VISIBLE_DEVICES": "6"}, EIGHT[:1]) == [0]
    assert places({"NVIDIA_VISIBLE_DEVICES": "1,0"}, EIGHT[:2]) == [0, 1]
    assert codes({"NVIDIA_VISIBLE_DEVICES": "0"}, EIGHT[:1]) == []
    assert places({"NVIDIA_VISIBLE_DEVICES": "6,7", "CUDA_VISIBLE_DEVICES": "1"}, EIGHT[:2]) == [1]


def test_a_container_that_reaches_more_than_it_was_given_counts_what_it_was_given():
    environ = {"NVIDIA_VISIBLE_DEVICES": f"{UUIDS[6]},{UUIDS[2]}"}
    assert places(environ) == [6, 2]
    assert codes(environ) == ["CL134"]
    assert places({**environ, "CUDA_VISIBLE_DEVICES": "1"}) == [2]


def test_a_container_list_that_fits_nothing_here_limits_nothing():
    assert places({"NVIDIA_VISIBLE_DEVICES": "GPU-zzzz"}) == list(range(8))
    assert places({"NVIDIA_VISIBLE_DEVICES": "12"}) == list(range(8))


@pytest.mark.parametrize("name", ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "NVIDIA_VISIBLE_DEVICES"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-1", [0, 1]),
        ("2-4,7", [2, 3, 4, 7]),
        ("5-5", [5]),
        ("[0-1]", [0, 1]),
        ("[0,2-3]", [0, 2, 3]),
        ("nvidia.com/gpu=0-3", [0, 1, 2, 3]),
        ("nvidia.com/gpu=0", [0]),
        (f"nvidia.com/gpu=3,nvidia.com/gpu={UUIDS[5]}", [3, 5]),
    ],
)
def test_ranges_and_names_of_the_container_device_interface_are_followed(name, text, expected):
    assert places({name: text}) == expected
    assert codes({name: text}) == ["CL134"]


@pytest.mark.parametrize("name", ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL", CONTAINER])
@pytest.mark.parametrize(
    "text", ["gpu:2", "4-2", "GPU-zzzz", "12", "a100:1", "/var/run/devices", "[0", "x" * 999]
)
def test_a_list_that_cannot_be_followed_is_said(name, text):
    """All are measured: the work's share of a node must not be guessed, and not be silent."""
    found = visible({name: text}, EIGHT)
    assert [p.device for p in found.picks] == list(range(8))
    (said,) = (f for f in found.findings if f.code == "CL138")
    assert (said.severity, name in said.message) == ("warning", True)
    assert len(said.message) < 250
    assert codes({name: text}, EIGHT[:1]) == []
    assert codes({name: text, "CUDA_VISIBLE_DEVICES": "1"}) == []  # which says it all


@pytest.mark.parametrize("text", ["all", "", "none", "void", "nvidia.com/gpu=all", "0-7"])
def test_a_list_that_leaves_nothing_out_is_not_remarked(text):
    assert places({CONTAINER: text}) == list(range(8))
    assert codes({CONTAINER: text}) == []


def test_cuda_shows_a_process_the_first_of_several_instances():
    """NVIDIA Multi-Instance GPU User Guide, "CUDA Device Enumeration"."""
    found = visible({"CUDA_VISIBLE_DEVICES": "MIG-2,MIG-1"}, [EIGHT[0], HALVES])
    assert found.picks == (Pick(1, 1),)
    assert [f.code for f in found.findings] == ["CL137"]
    assert codes({"CUDA_VISIBLE_DEVICES": "MIG-2"}, [EIGHT[0], HALVES]) == []
    assert codes({"CUDA_VISIBLE_DEVICES": "GPU-aaaa,GPU-bbbb"}) == []


@pytest.mark.parametrize("name", ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL"])
def test_an_allotment_counts_where_cuda_is_not_told(name):
    assert places({name: "2,3"}) == [2, 3]
    assert codes({name: "2,3"}) == ["CL134"]
    assert places({name: "2,3", "CUDA_VISIBLE_DEVICES": "7"}) == [7]


def test_the_step_counts_before_the_job():
    assert places({"SLURM_JOB_GPUS": "0,1,2,3", "SLURM_STEP_GPUS": "2"}) == [2]


def test_slurm_numbers_device_files_and_a_cgroup_renumbers():
    assert places({"SLURM_JOB_GPUS": "7"}, [EIGHT[7], EIGHT[2]]) == [0]
    assert places({"SLURM_JOB_GPUS": "7"}, [EIGHT[7]]) == [0]


def mixed(environ):
    return codes(environ, [Device(uuid="GPU-a", name="T4"), Device(uuid="GPU-b", name="H100")])


def test_the_order_of_a_mixed_node_cannot_be_told():
    assert mixed({"CUDA_VISIBLE_DEVICES": "0"}) == ["CL132"]
    assert mixed({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}) == ["CL132"]
    assert mixed({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == []
    assert mixed({"CUDA_VISIBLE_DEVICES": "1,0"}) == []
    assert mixed({"CUDA_VISIBLE_DEVICES": "GPU-b"}) == []
    assert codes({"CUDA_VISIBLE_DEVICES": "0"}) == []


def test_amd_lists_narrow_one_after_the_other():
    uuids = ["GPU-1111", "GPU-2222", "GPU-3333", "GPU-4444"]
    assert amd_visible({}, uuids) == (0, 1, 2, 3)
    assert amd_visible({"ROCR_VISIBLE_DEVICES": "1,3"}, uuids) == (1, 3)
    assert amd_visible({"ROCR_VISIBLE_DEVICES": "GPU-3333,GPU-1111"}, uuids) == (2, 0)
    assert amd_visible({"ROCR_VISIBLE_DEVICES": "1,3", "HIP_VISIBLE_DEVICES": "1"}, uuids) == (3,)
    assert amd_visible({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "2"}, uuids) == (0,)
    assert amd_visible({"CUDA_VISIBLE_DEVICES": "2"}, uuids) == (2,)
    assert amd_visible({"HIP_VISIBLE_DEVICES": ""}, uuids) == ()
    assert amd_visible({"ROCR_VISIBLE_DEVICES": "-1"}, uuids) == ()


entries = st.one_of(
    st.integers(-2, 20).map(str),
    st.sampled_from([*UUIDS, "GPU-a", "GPU-zz", "MIG-1", "MIG-GPU-99999999-1111/1/0", "", "x", "MIG-"]),
    st.text(max_size=6).filter(lambda t: "," not in t),
)
lists = st.lists(entries, max_size=6).map(",".join)
nodes = st.integers(0, 8).map(lambda n: [*EIGHT[:n], HALVES])


@given(text=lists, node=nodes)
def test_any_list_chooses_devices_that_exist_and_each_once(text, node):
    found = picks(text, node)
    assert len(set(found)) == len(found)
    for pick in found:
        assert 0 <= pick.device < len(node)
        assert pick.instance is None or pick.instance < len(node[pick.device].instances)


@given(chosen=st.lists(st.integers(0, 7), unique=True, min_size=1), tail=lists)
def test_what_follows_an_entry_that_names_nothing_does_not_count(chosen, tail):
    listed = ",".join(map(str, chosen))
    assert cuda(f"{listed},none-such,{tail}") == chosen
    assert cuda(",".join(UUIDS[k] for k in chosen) + f",GPU-none-such,{tail}") == chosen


@given(st.dictionaries(st.sampled_from(["CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"]), lists))
def test_a_limit_never_adds_devices(environ):
    assert set(places(environ)) <= set(range(8))


@given(text=lists)
def test_what_a_container_allots_is_counted_only_if_it_fits_whole(text):
    found = places({"NVIDIA_VISIBLE_DEVICES": text})
    assert found == list(range(8)) or 0 < len(found) < 8


@pytest.mark.parametrize(
    "name", [CUDA, CONTAINER, *ALLOTTED, "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"]
)
@pytest.mark.parametrize(
    "text", ["9" * 5000, "1:" + "9" * 5000, f"MIG-GPU-x/{'9' * 5000}/{'9' * 5000}", "0," * 5000]
)
def test_a_variable_of_any_length_is_followed_or_passed_over_and_never_raises(name, text):
    assert {pick.device for pick in visible({name: text}, EIGHT).picks} <= set(range(8))
    assert set(amd_visible({name: text}, UUIDS)) <= set(range(8))
