"""Run traces without a run: a board that tells a load by its own line, and meters of it."""

from carbonlens.metering.host import this_host
from carbonlens.metering.sealing import Sample
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.trace_file import SCHEMA, Head, columns_of, rows_of, write_trace

GPU = "GPU-0a1b2c3d-1111-2222-3333-444455556666"
RUN_ID = "019c0000-0000-7000-8000-00000000abcd"
START_US = 1_790_000_000_000_000
GAIN, OFFSET_W, LAG_S = 1.05, 6.0, 0.1
LEVELS_W = (60.0, 150.0, 320.0, 240.0)
PACE_S = 0.1


def board(device=GPU, component="gpu", **more) -> SensorInfo:
    given = {"name": "nvml_power", "kind": "instant", "grade": "C", "update_period_s": 0.1, **more}
    return SensorInfo(
        unit="W",
        scope="board",
        boundary="device",
        channels=(Channel(device=device, component=component),),
        method="power of the board",
        **given,
    )


def meter(name="pmd", component="gpu", rails=(), **more) -> SensorInfo:
    given = {"grade": "A", "gain_sigma": 0.005, "update_period_s": 0.01, **more}
    return SensorInfo(
        name=f"external:{name}",
        kind="cumulative",
        unit="J",
        scope="rail",
        boundary="device",
        channels=tuple(
            Channel(device=f"{name}:{r}" if r else name, component=component) for r in rails or (None,)
        ),
        method=f"external meter {name}",
        **given,
    )


def load_w(t_s, levels=LEVELS_W, step_s=5.0):
    return levels[int(t_s / step_s) % len(levels)]


def joules(t_s, levels=LEVELS_W, step_s=5.0):
    whole, rest_s = divmod(t_s, step_s)
    before = sum(levels[k % len(levels)] for k in range(int(whole))) * step_s
    return before + load_w(t_s, levels, step_s) * rest_s


def samples(infos, *, seconds=60, levels=LEVELS_W, step_s=5.0, gain=GAIN, failed=lambda info, t_s: False):
    """Looks ten times a second: boards tell the load late and wrong, meters count it."""
    for i in range(int(seconds / PACE_S)):
        t_s = 0.03 + i * PACE_S
        values = []
        for info in infos:
            told = (
                joules(t_s, levels, step_s) / len(info.channels)
                if info.unit == "J"
                else (load_w(max(t_s - LAG_S, 0.0), levels, step_s) - OFFSET_W) / gain
            )
            values.append(None if failed(info, t_s) else (told,) * len(info.channels))
        yield Sample(t_us=round(t_s * 1e6), values=tuple(values))


def head(**more) -> Head:
    host = this_host()
    given = {"run_id": RUN_ID, "start_us": START_US, "host_id": host.host_id, "machine_id": host.machine}
    return Head(schema=SCHEMA, **{**given, **more})


def put_trace(file, *infos, of=None, **more) -> str:
    """Write the trace of a minute of load, and return its hash."""
    about = of or head()
    return write_trace(file, about, columns_of(infos), rows_of(samples(infos, **more), infos, about.start_us))
