"""Jetson file systems: device tree and INA monitors as the kernels of JetPack 4 to 7 lay them out."""

from tests.metering.trees_sysfs import device_tree, put


def chip(root, address="1-0040", hwmon="hwmon3", driver="ina3221"):
    return root / "sys" / "bus" / "i2c" / "drivers" / driver / address / "hwmon" / hwmon


def rail(folder, channel, label, mv, ma):
    put(folder / f"in{channel}_label", label)
    put(folder / f"in{channel}_input", mv)
    put(folder / f"curr{channel}_input", ma)


def shunts(folder):
    """Shunt voltages and their sum, which look like more rails."""
    for channel in (4, 5, 6):
        put(folder / f"in{channel}_input", 900)
    put(folder / "in7_label", "sum of shunt voltages")
    put(folder / "in7_input", 760)
    put(folder / "curr4_input", 360)


def orin_nx(root):
    device_tree(root, "NVIDIA Orin NX Developer Kit", "nvidia,p3768-0000+p3767-0000", "nvidia,p3767-0000")
    folder = chip(root)
    rail(folder, 1, "VDD_IN", 5000, 1060)
    rail(folder, 2, "VDD_CPU_GPU_CV", 5000, 154)
    rail(folder, 3, "VDD_SOC", 5000, 284)
    shunts(folder)
    return folder


def agx_orin(root):
    """The figures of tegrastats format 4, as voltages and currents."""
    device_tree(
        root,
        "NVIDIA Jetson AGX Orin Developer Kit",
        "nvidia,p3737-0000+p3701-0000",
        "nvidia,p3701-0000",
        "nvidia,tegra234",
    )
    first = chip(root, "1-0040", "hwmon3")
    rail(first, 1, "VDD_GPU_SOC", 20000, 120)
    rail(first, 2, "VDD_CPU_CV", 20000, 40)
    rail(first, 3, "VIN_SYS_5V0", 5000, 704)
    shunts(first)
    second = chip(root, "1-0041", "hwmon4")
    rail(second, 1, "NC", 0, 0)
    rail(second, 2, "VDDQ_VDD2_1V8AO", 5000, 60)
    rail(second, 3, "NC", 0, 0)
    return first


def nano_jetpack_4(root):
    """The figures of tegrastats format 1, in milliwatts by the iio driver."""
    device_tree(root, "NVIDIA Jetson Nano Developer Kit", "nvidia,p3448-0000", "nvidia,jetson-nano")
    folder = root / "sys" / "bus" / "i2c" / "drivers" / "ina3221x" / "6-0040" / "iio:device0"
    for index, (name, mw) in enumerate((("POM_5V_IN", 933), ("POM_5V_GPU", 0), ("POM_5V_CPU", 84))):
        put(folder / f"rail_name_{index}", name)
        put(folder / f"in_power{index}_input", mw)
    return folder


def thor(root, *, vin=True):
    device_tree(
        root, "NVIDIA Jetson AGX Thor Developer Kit", "nvidia,p4071-0000+p3834-0008", "nvidia,tegra264"
    )
    folder = chip(root, "2-0040", "hwmon2")
    rail(folder, 1, "VDD_GPU", 20000, 98)
    rail(folder, 2, "VDD_CPU_SOC_MSS", 20000, 294)
    rail(folder, 3, "VIN_SYS_5V0", 5000, 1127)
    if vin:
        put(chip(root, "2-0044", "hwmon5", driver="ina238") / "power1_input", 19_780_000)
    return folder
