"""The grade that a sensor's figures carry is the one that the documentation states."""

import re
from pathlib import Path

import pytest

from carbonlens.domain.sources import DatasheetDevice, ExternalMeter, ManagementController, Sources
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors.candidates import candidates, head_of

PAGE = Path(__file__).parents[2] / "docs" / "measuring.md"
ROW = re.compile(r"^\| (`[^|]+) \|[^|]+\|[^|]+\| ([A-E](?:, [A-E])?) \|", re.MULTILINE)


def documented():
    """Return the grade by name: of a row of two names and two grades, each its own."""
    grades = {}
    for cell, stated in ROW.findall(PAGE.read_text("utf-8")):
        names, letters = re.findall(r"`([\w:]+)`", cell), stated.split(", ")
        pairs = zip(names, letters if len(letters) == len(names) else letters * len(names), strict=True)
        grades |= dict(pairs)
    return grades


@pytest.mark.parametrize("kind", ["ipmi", "redfish"])
def test_every_sensor_has_the_grade_of_the_table(kind):
    sources = Sources(
        external=(ExternalMeter(name="NAME", command=("true",)),),
        datasheet=(DatasheetDevice(device="NAME", power_w=2.0, source="here", component="npu"),),
        controller=ManagementController(kind=kind, url="https://controller.example/"),
        powermetrics=True,
    )
    grades, seen = documented(), set()
    for sensor in candidates(sources, TreeClock(), everywhere=True):
        info = sensor.info
        name = info.name if info.name in grades else f"{head_of(info)}:NAME"
        if name in grades:
            seen.add(name)
            assert info.grade == grades[name], name
        sensor.close()
    assert {"rapl", "powermetrics", "external:NAME", "datasheet:NAME", "cpu_model", kind} <= seen
