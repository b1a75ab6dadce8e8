"""Accel trees as the driver of Intel's NPU lays them out."""

from tests.metering.trees_sysfs import put


def npu(root, index=0, busy_us=0, *, driver="intel_vpu", address="0000:00:0b.0"):
    """Add an accelerator and return its counter file, which is there unless ``busy_us`` is None."""
    device = root / "sys" / "devices" / address
    device.mkdir(parents=True)
    code = root / "sys" / "bus" / "pci" / "drivers" / driver
    code.mkdir(parents=True, exist_ok=True)
    (device / "driver").symlink_to(code)
    folder = root / "sys" / "class" / "accel" / f"accel{index}"
    folder.mkdir(parents=True)
    (folder / "device").symlink_to(device)
    file = device / "npu_busy_time_us"
    if busy_us is not None:
        put(file, busy_us)
    return file
