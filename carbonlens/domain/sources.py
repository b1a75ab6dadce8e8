"""Sources: energy sources that a user declares, because no probe can find them.

They stand in the user's TOML; ``inventory`` loads them and ``metering`` reads them.
Nothing here is asked of the network, of another program or of an administrator's
rights unless it is declared.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from carbonlens.domain.units import Boundary

MOST_TDP_W: Final = 2_000.0
"""No CPU package has more: AMD EPYC 9965 has 500 W (data sheet, 2024)."""


class ExternalMeter(msgspec.Struct, frozen=True, kw_only=True):
    """A program, or a pipe, that prints ``t_us,watts[,rail]`` lines (grade A).

    Attributes:
        name: Of the meter; its readings' device is ``name`` or ``name:rail``.
        command: Program with its arguments, started without a shell.
        pipe: Path of a named pipe or file to read instead of a command.
        component: What it meters; ``wall`` is the whole machine at the plug.
        boundary: What its joules include.
        gain_95: Relative 95 % accuracy from the meter's specification; ``None``
            when it is not stated, and the width is then unknown.
        offset_95_w: The same of its offset, in watts.
        rails: Names in the third column that are read, each a device of its own;
            empty adds up all lines, whatever rail they name.
        period_s: Seconds between two lines of a rail; ``None`` takes what is seen,
            and 1 s where a run starts before a line was.
    """

    name: str
    command: tuple[str, ...] = ()
    pipe: str | None = None
    component: str = "wall"
    boundary: Boundary = "it"
    gain_95: float | None = None
    offset_95_w: float | None = None
    rails: tuple[str, ...] = ()
    period_s: float | None = None


class DatasheetDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device without a sensor, of which only a constant is known (grade E).

    Attributes:
        device: Its name.
        component: For example ``npu``.
        power_w: Watts while the run lasts.
        source: Datasheet the figure stands in, with its version or date.
    """

    device: str
    power_w: float
    source: str
    component: str = "npu"


class ManagementController(msgspec.Struct, frozen=True, kw_only=True):
    """The server's own management controller, which reads its power supplies.

    Attributes:
        kind: ``ipmi`` runs ``ipmitool`` on this machine; ``redfish`` asks ``url``.
        url: Address of the Redfish chassis or its power resource.
        user_variable, password_variable: Environment variables that hold the account.
        ca_file: Certificate to trust; ``None`` trusts the system's.
    """

    kind: Literal["ipmi", "redfish"]
    url: str | None = None
    user_variable: str = "CARBONLENS_REDFISH_USER"
    password_variable: str = "CARBONLENS_REDFISH_PASSWORD"  # noqa: S105  # a variable's name
    ca_file: str | None = None


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """All that a user declared; the default declares nothing.

    Attributes:
        cpu_tdp_w: Thermal design power of one CPU package.
        cpu_threads: Hardware threads of one CPU package; needed beside ``cpu_tdp_w``
            in a virtual machine, which does not see its host's.
        powermetrics: Whether Apple's ``powermetrics`` may be run by ``sudo -n``.
        leave_out: Names of sensors that must not be read.
    """

    external: tuple[ExternalMeter, ...] = ()
    datasheet: tuple[DatasheetDevice, ...] = ()
    controller: ManagementController | None = None
    cpu_tdp_w: float | None = None
    cpu_threads: int | None = None
    powermetrics: bool = False
    leave_out: tuple[str, ...] = ()
