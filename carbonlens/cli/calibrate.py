"""``carbonlens calibrate``: this machine's CPU curve, or a device's power readings, against a meter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.errors import UsageError

_PERCENT = 100


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("calibrate", calibrate_command)


def calibrate_command(
    device: Annotated[
        str | None, grammar.Argument(help="cpu, or a device: its id, the beginning of it, a GPU's number.")
    ] = None,
    against: Annotated[
        str | None,
        grammar.Option(
            "--against",
            help="rapl, external, external:NAME, ipmi, redfish, watts:IDLE,FULL; "
            "for a device also a RUN that kept a trace, latest, or its FILE.",
            is_path=True,
        ),
    ] = None,
    seconds: Annotated[
        float | None, grammar.Option("--seconds", help="Of each phase for cpu [5]; in all for a device [60].")
    ] = None,
    idle_w: Annotated[
        float | None, grammar.Option("--idle-w", help="cpu: watts at the plug, idle, read by hand.")
    ] = None,
    full_w: Annotated[
        float | None, grammar.Option("--full-w", help="cpu: watts at the plug, all threads busy.")
    ] = None,
    device_trace: Annotated[
        Path | None, grammar.Option("--device-trace", help="t_us,watts lines of the device.")
    ] = None,
    meter_trace: Annotated[
        Path | None, grammar.Option("--meter-trace", help="The same of the meter, on the same clock.")
    ] = None,
    meter: Annotated[
        str | None,
        grammar.Option("--meter", help="Name of a meter read by hand or file, or of one in a run."),
    ] = None,
    meter_95: Annotated[
        float | None, grammar.Option("--meter-95", help="Its accuracy in per cent, by its specification.")
    ] = None,
    list_: Annotated[bool, grammar.Option("--list", help="List what is calibrated.")] = False,
    remove: Annotated[
        str | None, grammar.Option("--remove", metavar="DEVICE", help="Delete a calibration.")
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Calibrate this machine's CPU curve, or a device's power readings, against a meter."""
    from carbonlens.cli import calibrate_view as view

    asked = [name for name, on in (("DEVICE", device), ("--list", list_), ("--remove", remove)) if on]
    if len(asked) != 1:
        raise UsageError(
            "one of DEVICE, --list and --remove is wanted" if not asked else f"{' and '.join(asked)} at once",
            mend="carbonlens calibrate cpu, or see carbonlens calibrate --help",
        )
    if list_:
        from carbonlens.app.calibrate import list_calibrations

        view.print_list(list_calibrations(), json=json)
        return
    if remove is not None:
        from carbonlens.app.calibrate import remove_calibration

        view.print_removed(remove, remove_calibration(remove), json=json)
        return
    if meter_95 is not None and not 0 < meter_95 < _PERCENT:
        raise UsageError(f"--meter-95 {meter_95:g} is no accuracy in per cent", mend="write --meter-95 1.5")
    share = None if meter_95 is None else meter_95 / _PERCENT
    try:
        if (device or "").lower() == "cpu":
            if device_trace is not None or meter_trace is not None:
                raise UsageError("traces are for a device, not for cpu", mend="give --idle-w and --full-w")
            _cpu(against, seconds, (idle_w, full_w), (meter, share), json=json)
        else:
            if idle_w is not None or full_w is not None:
                raise UsageError("--idle-w and --full-w are for cpu", mend="carbonlens calibrate cpu ...")
            traces = (device_trace, meter_trace)
            _device(device or "", against, seconds, traces, (meter, share), ledger, json=json)
    except KeyboardInterrupt as error:
        from carbonlens.cli import output

        output.note("stopped: nothing was kept")
        raise grammar.Exit(130) from error


def _cpu(
    against: str | None,
    seconds: float | None,
    watts: tuple[float | None, float | None],
    meter: tuple[str | None, float | None],
    *,
    json: bool,
) -> None:
    from carbonlens.app.calibrate import CpuRequest, calibrate_cpu, declared_sources
    from carbonlens.cli import calibrate_view as view
    from carbonlens.cli import output

    request = CpuRequest(
        against=against,
        seconds=5.0 if seconds is None else seconds,
        idle_w=watts[0],
        full_w=watts[1],
        meter=meter[0],
        meter_95=meter[1],
    )
    view.print_cpu(calibrate_cpu(request, declared_sources(), progress=output.note), json=json)


def _device(
    device: str,
    against: str | None,
    seconds: float | None,
    traces: tuple[Path | None, Path | None],
    meter: tuple[str | None, float | None],
    ledger: Path | None,
    *,
    json: bool,
) -> None:
    from carbonlens.app.calibrate import declared_sources
    from carbonlens.app.calibrate_device import calibrate_device
    from carbonlens.app.calibrate_fit import DeviceRequest
    from carbonlens.cli import calibrate_view as view
    from carbonlens.cli import output

    request = DeviceRequest(
        device=device,
        against=against,
        seconds=60.0 if seconds is None else seconds,
        device_trace=traces[0],
        meter_trace=traces[1],
        meter=meter[0],
        meter_95=meter[1],
        ledger=ledger,
    )
    view.print_device(calibrate_device(request, declared_sources(), progress=output.note), json=json)
