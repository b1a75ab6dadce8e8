"""Redfish against a real HTTP server on this machine, with and without TLS."""

import base64
import shutil
import ssl
import subprocess

import pytest

from carbonlens.domain.sources import ManagementController
from carbonlens.metering.sensors.redfish import RedfishSensor, watts_of
from tests.metering.meters import Controller

CHASSIS = "/redfish/v1/Chassis/1"
SECRET = "swordfish"  # noqa: S105  # of nobody


def link(path):
    return {"@odata.id": path}


def power(watts, **more):
    return {"PowerControl": [{"PowerConsumedWatts": watts, **more}]}


@pytest.fixture
def account(monkeypatch):
    monkeypatch.setenv("CARBONLENS_REDFISH_USER", "reader")
    monkeypatch.setenv("CARBONLENS_REDFISH_PASSWORD", SECRET)


@pytest.fixture
def server(account):
    made = []

    def start(documents, context=None):
        made.append(Controller(documents, context))
        return made[-1]

    yield start
    for controller in made:
        controller.close()


def probed(url, path=CHASSIS, **more):
    sensor = RedfishSensor(ManagementController(kind="redfish", url=url + path, **more), wait_s=60)
    try:
        probe = sensor.probe()
        assert SECRET not in repr(probe)
        assert SECRET not in repr(sensor.info)
        values = sensor.read(edge=True) if probe.usable else None
    finally:
        sensor.close()
    return probe, values


def test_the_older_power_resource_is_read_with_the_account(server):
    controller = server({CHASSIS: {"Power": link(f"{CHASSIS}/Power")}, f"{CHASSIS}/Power": power(324)})
    probe, values = probed(controller.url)
    assert probe.usable
    assert values == (324.0,)
    told = {base64.b64decode(a.removeprefix("Basic ")).decode() for a in controller.accounts}
    assert told == {f"reader:{SECRET}"}


def test_the_newer_environment_metrics_are_read(server):
    metrics = {"PowerWatts": {"Reading": 374}}
    documents = {
        CHASSIS: {"EnvironmentMetrics": link(f"{CHASSIS}/EnvironmentMetrics")},
        f"{CHASSIS}/EnvironmentMetrics": metrics,
    }
    assert probed(server(documents).url)[1] == (374.0,)


def supplies(*readings):
    subsystem = f"{CHASSIS}/PowerSubsystem"
    members = [f"{subsystem}/PowerSupplies/{k}" for k in range(len(readings))]
    documents = {
        CHASSIS: {"PowerSubsystem": link(subsystem)},
        subsystem: {"CapacityWatts": 1600, "PowerSupplies": link(f"{subsystem}/PowerSupplies")},
        f"{subsystem}/PowerSupplies": {"Members": [link(m) for m in members]},
    }
    for member, reading in zip(members, readings, strict=True):
        documents[member] = {"Metrics": link(f"{member}/Metrics")}
        documents[f"{member}/Metrics"] = {"InputPowerWatts": {"Reading": reading}}
    return documents


def test_power_supplies_are_added_and_a_sum_without_one_is_unknown(server):
    assert probed(server(supplies(150, "151.5")).url)[1] == (301.5,)
    probe, _ = probed(server(supplies(150, None)).url)
    assert not probe.usable
    assert "tells no power" in probe.reason


def test_a_link_to_a_resource_that_is_not_there_is_passed_over(server):
    documents = {
        CHASSIS: {
            "EnvironmentMetrics": link(f"{CHASSIS}/EnvironmentMetrics"),
            "Power": link(f"{CHASSIS}/Power"),
        },
        f"{CHASSIS}/Power": power("69"),
    }
    assert probed(server(documents).url)[1] == (69.0,)


def test_the_power_resource_itself_may_be_declared(server):
    assert probed(server({f"{CHASSIS}/Power": power(200)}).url, f"{CHASSIS}/Power")[1] == (200.0,)


@pytest.mark.parametrize(
    ("document", "watts"),
    [
        (power("69"), 69.0),
        (power(None), None),
        (power(0), None),
        (power(True), None),
        (power("N/A"), None),
        (power(-1), None),
        (power("nan"), None),
        ({"PowerControl": []}, None),
        ({"PowerControl": [{"PowerMetrics": {"AverageConsumedWatts": 330}}]}, None),
        ({"PowerWatts": {"Reading": None}}, None),
        ({"PowerWatts": 5}, None),
        ({}, None),
    ],
)
def test_numbers_strings_nulls_and_noughts(document, watts):
    assert watts_of(document) == watts


def test_parts_are_not_added_and_do_not_stand_in_for_the_whole():
    cpu = {"PhysicalContext": "CPU", "PowerConsumedWatts": 120}
    chassis = {"PhysicalContext": "Chassis", "PowerConsumedWatts": 400}
    assert watts_of({"PowerControl": [cpu, chassis]}) == 400.0
    assert watts_of({"PowerControl": [{"PowerConsumedWatts": 350}, cpu]}) == 350.0
    assert watts_of({"PowerControl": [cpu, {**chassis, "PowerConsumedWatts": None}]}) is None
    assert watts_of({"PowerControl": [cpu]}) is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (401, "refuses the account"),
        (404, "no such resource"),
        (500, "HTTP 500"),
        (302, "HTTP 302"),
        (b"<html>", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"PowerWatts": {"Reading": ' + b"9" * 401 + b"}}", "tells no power"),
        ({"Power": link("http://elsewhere.invalid/Power")}, "another machine"),
        ({}, "tells no power"),
    ],
)
def test_a_fault_is_named_and_never_a_number(server, answer, reason):
    probe, values = probed(server({CHASSIS: answer}).url)
    assert values is None
    assert reason in probe.reason
    assert probe.mend


def test_the_account_is_not_sent_on_to_another_address(server):
    controller = server({CHASSIS: 302})
    probed(controller.url)
    assert len(controller.accounts) == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "no address"),
        ("https://[", "no address"),
        ("https://bmc.example:port/redfish", "no address"),
        ("http://bmc.example/redfish/v1/Chassis/1", "in the clear"),
        (f"https://reader:{SECRET}@bmc.example/redfish/v1/Chassis/1", "holds an account"),
    ],
)
def test_a_wrong_declaration_is_said_before_anything_is_sent(account, url, reason):
    probe, _ = probed(url, "")
    assert reason in probe.reason
    sensor = RedfishSensor(ManagementController(kind="redfish", url=url))
    with pytest.raises(OSError, match=reason):
        sensor.read(edge=True)
    sensor.close()


def test_an_account_that_is_not_there_names_its_variables(monkeypatch):
    monkeypatch.delenv("CARBONLENS_REDFISH_USER", raising=False)
    monkeypatch.setenv("CARBONLENS_REDFISH_PASSWORD", "x")
    probe, _ = probed("https://127.0.0.1:9")
    assert "CARBONLENS_REDFISH_USER" in probe.mend
    assert "PASSWORD" not in probe.mend


def test_nobody_there_is_said(account):
    probe, _ = probed("https://127.0.0.1:9")
    assert "cannot be reached" in probe.reason


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    subprocess.run(
        [
            *"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1".split(),
            *"-addext subjectAltName=IP:127.0.0.1".split(),
            *["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")],
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return str(tmp_path / "cert.pem"), context


def test_a_certificate_is_checked_and_may_be_declared(server, certificate):
    ca_file, context = certificate
    controller = server({CHASSIS: power(111)}, context)
    probe, _ = probed(controller.url)
    assert not probe.usable
    assert "ca_file" in probe.mend
    assert controller.accounts == []  # nothing was sent to a stranger
    assert probed(controller.url, ca_file=ca_file)[1] == (111.0,)


def test_a_certificate_file_that_is_not_there_is_a_fault(account):
    probe, _ = probed("https://127.0.0.1:9", ca_file="/no/such/cert.pem")
    assert not probe.usable
