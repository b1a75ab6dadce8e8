"""Which price per device hour is that of a run's devices, and how many these are."""

import pytest

from carbonlens.accounting.device_prices import device_count, device_subject, is_whole

SUBJECTS = ("gpu:H100", "gpu:A100", "gpu:A100 80GB", "gpu:A10", "gpu:GH200")


@pytest.mark.parametrize(
    ("names", "subject"),
    [
        ("NVIDIA H100 80GB HBM3", "gpu:H100"),
        ("h100", "gpu:H100"),
        ("NVIDIA A100-SXM4-80GB", "gpu:A100 80GB"),
        ("NVIDIA A100-SXM4-40GB", "gpu:A100"),
        ("NVIDIA GH200 480GB", "gpu:GH200"),
        ("cpu_model Xeon, gpu_model 4 x NVIDIA A10", "gpu:A10"),
        # Of two kinds nobody can tell which the hours are of, and words of two devices are of none.
        ("NVIDIA H100, NVIDIA GH200", None),
        ("A100, 80GB of memory", "gpu:A100"),
        ("AMD EPYC 9334 x64", None),
        ("", None),
        (None, None),
    ],
)
def test_the_price_is_that_whose_words_the_name_holds(names, subject):
    assert device_subject(names, SUBJECTS) == subject


@pytest.mark.parametrize(
    ("names", "count"),
    [
        *(("8 x NVIDIA H100", 8), ("8\N{MULTIPLICATION SIGN} NVIDIA H100", 8), ("AMD x64, 2x H100", 2)),
        *(("NVIDIA H100", None), ("0 x H100", None), ("4 x NVIDIA A100, NVIDIA H100", None)),
    ],
)
def test_devices_are_counted_where_the_name_does(names, count):
    assert device_count(names, "gpu:H100") == count


def test_a_slice_is_no_whole_device():
    assert is_whole("GPU-7c1f")
    assert not is_whole("MIG-7c1f")
