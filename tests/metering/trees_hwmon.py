"""Hwmon trees as ACPI power meters, Intel GPUs and INA chips show themselves."""

from tests.metering.trees_sysfs import put


def hwmon(root, index, name=None):
    folder = root / "sys" / "class" / "hwmon" / f"hwmon{index}"
    folder.mkdir(parents=True)
    if name is not None:
        put(folder / "name", name)
    return folder


def grace(root, index, info, microwatts):
    """A Grace meter; its files stand in the folder of the ACPI device."""
    device = hwmon(root, index) / "device"
    put(device / "power1_oem_info", info)
    put(device / "power1_average", microwatts)
    put(device / "power1_average_interval", 50)
    return device / "power1_average"


def grace_hopper(root):
    files = {}
    for index, (info, watts) in enumerate(
        (
            ("Module Power Socket 0", 400),
            ("Grace Power Socket 0", 100),
            ("CPU Power Socket 0", 70),
            ("SysIO Power Socket 0", 20),
        ),
        1,
    ):
        files[info.split()[0].lower()] = grace(root, index, info, watts * 1_000_000)
    return files


def acpi(root, index, microwatts, *, measures=("LNXSYBUS:00",), interval_ms=1000):
    folder = hwmon(root, index, "power_meter")
    put(folder / "power1_average", microwatts)
    put(folder / "power1_average_interval", interval_ms)
    for what in measures:
        put(folder / "measures" / what, "")
    return folder


def intel_gpu(root, index, name, microjoules, *, label=None, address="0000:03:00.0"):
    """Energy counters of a card; ``label`` names them in the order of their numbers."""
    folder = hwmon(root, index, name)
    device = root / "sys" / "devices" / address
    device.mkdir(parents=True, exist_ok=True)
    (folder / "device").symlink_to(device)
    for n, uj in enumerate(microjoules, 1):
        put(folder / f"energy{n}_input", uj)
        if label is not None:
            put(folder / f"energy{n}_label", label[n - 1])
    return folder
