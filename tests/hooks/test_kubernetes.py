"""The Kubernetes example: a manifest that says what the entrypoint reads, and the entrypoint itself."""

import json
import subprocess
import sys

import pytest

from tests.hooks.nodes import HOOKS
from tests.metering.processes import clean_environment, runs

KUBERNETES = HOOKS / "kubernetes"


def manifest():
    yaml = pytest.importorskip("yaml", reason="yaml is of an extra that is not installed")
    (job,) = yaml.safe_load_all((KUBERNETES / "job.yaml").read_text())
    return job


def entrypoint(folder, *command, labels='app="train"\nteam="a-b_c.d"\nexample.com/tier="x"', **more):
    (folder / "labels").write_text(labels)
    wrapper = folder / "carbonlens"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m carbonlens.cli.main "$@"\n')
    wrapper.chmod(0o755)
    variables = {
        "CARBONLENS_COMMAND": str(wrapper),
        "CARBONLENS_POD_LABELS": str(folder / "labels"),
        "CARBONLENS_LEDGER": str(folder / "ledger"),
        **more,
    }
    return subprocess.run(
        [KUBERNETES / "entrypoint.sh", *command],
        cwd=folder,
        env=clean_environment(folder, **variables),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_manifest_is_a_job_whose_labels_reach_the_entrypoint():
    job = manifest()
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    pod = job["spec"]["template"]
    spec = pod["spec"]
    (container,) = spec["containers"]
    volumes = {v["name"]: v for v in spec["volumes"]}
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    assert set(mounts) == set(volumes)
    (item,) = volumes["podinfo"]["downwardAPI"]["items"]
    assert item["fieldRef"]["fieldPath"] == "metadata.labels"
    script = (KUBERNETES / "entrypoint.sh").read_text()
    assert f"{mounts['podinfo']}/{item['path']}" in script
    variables = {e["name"]: e for e in container["env"]}
    for name in ("POD_NAME", "POD_NAMESPACE", "NODE_NAME"):
        assert name in variables
        assert name in script
    # With a read-only root everything that is written lies on a volume.
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    for name in ("CARBONLENS_LEDGER", "XDG_STATE_HOME"):
        assert variables[name]["value"].startswith(tuple(mounts.values()))
    assert json.dumps(pod["metadata"]["labels"])


def test_the_image_starts_the_entrypoint():
    lines = (KUBERNETES / "Dockerfile").read_text().splitlines()
    assert 'ENTRYPOINT ["/usr/local/bin/carbonlens-entrypoint"]' in lines
    assert "COPY entrypoint.sh /usr/local/bin/carbonlens-entrypoint" in lines


def test_labels_and_places_become_tags_and_the_exit_code_is_the_commands(tmp_path):
    done = entrypoint(tmp_path, "sh", "-c", 'echo "$1|$2"; exit 7', "sh", "a b", "*", POD_NAME="p-1")
    assert (done.returncode, done.stdout) == (7, "a b|*\n")
    (run,) = runs(tmp_path / "ledger")
    assert run.tags == {"app": "train", "team": "a-b_c.d", "example.com/tier": "x", "pod.name": "p-1"}


@pytest.mark.parametrize("labels", ["", "\n", 'app="train"\n'])
def test_a_file_of_labels_may_be_empty_or_end_in_a_line_break(tmp_path, labels):
    done = entrypoint(tmp_path, "true", labels=labels)
    assert done.returncode == 0, done.stderr
    (run,) = runs(tmp_path / "ledger")
    assert run.tags == ({"app": "train"} if "app" in labels else {})


def test_without_labels_the_command_runs_all_the_same(tmp_path):
    done = entrypoint(tmp_path, "echo", "hi", CARBONLENS_POD_LABELS=str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "hi\n")


@pytest.mark.parametrize("broken", ["no such program", "#!/bin/sh\nexit 1\n", "not executable"])
def test_without_a_working_carbonlens_the_command_runs_unmeasured(tmp_path, broken):
    command = tmp_path / "broken"
    if broken != "no such program":
        command.write_text(broken)
        command.chmod(0o644 if broken == "not executable" else 0o755)
    done = entrypoint(tmp_path, "sh", "-c", "echo hi; exit 7", CARBONLENS_COMMAND=str(command))
    assert (done.returncode, done.stdout) == (7, "hi\n")
    assert "unmeasured" in done.stderr
