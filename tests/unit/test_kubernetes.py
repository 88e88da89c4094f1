"""conf/kubernetes: the manifests against the schemas of Kubernetes, their commands against our own command line."""

import itertools
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pyspark import __file__ as spark_file

from hudi_services.cli.app import run
from hudi_services.errors import TableNotFound

CONF = Path(__file__).resolve().parents[2] / "conf" / "kubernetes"
MANIFESTS = sorted(CONF.glob("*.yaml"))
KUBERNETES = ("1.28", "1.33")
"""An old and a new version: what is deprecated in between would be seen."""


def documents(manifest: Path) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all(manifest.read_text(encoding="utf-8"))]


def pod(manifest: Path) -> dict[str, Any]:
    (job,) = (one for one in documents(manifest) if one["kind"] == "CronJob")
    return job["spec"]["jobTemplate"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: one.stem)
def test_the_schemas_of_kubernetes_accept_them(manifest: Path) -> None:
    for document, version in itertools.product(documents(manifest), KUBERNETES):
        kubernetes_validate.validate(document, version, strict=True)
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate({**document, "specs": {}}, version, strict=True)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: one.stem)
def test_their_commands_are_ours(manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (container,) = pod(manifest)["containers"]
    (program,), args = container["command"], container["args"]
    if program == "hudi-services-submit":
        args = args[args.index("--") + 1 :]
    else:
        assert program == "hudi-services"
    assert "s3a://lake/rides" in args
    found = [str(tmp_path / "nowhere") if one == "s3a://lake/rides" else one for one in args]
    # Everything on the line is understood, and then there is no table.
    assert run(found) == TableNotFound.exit_code
    assert "there is nothing at" in capsys.readouterr().err


def test_what_they_name_is_there() -> None:
    executors = next(one for one in MANIFESTS if one.stem == "executors")
    (container,) = pod(executors)["containers"]
    (account,) = (one["metadata"]["name"] for one in documents(executors) if one["kind"] == "ServiceAccount")
    assert pod(executors)["serviceAccountName"] == account
    texts = " ".join(container["args"])
    assert {*re.findall(r"\$\((\w+)\)", texts)} <= {one["name"] for one in container["env"]}
    images = {one["image"] for manifest in MANIFESTS for one in pod(manifest)["containers"]}
    assert images == {*re.findall(r"container\.image=(\S+)", texts)}
    dockerfile = (CONF / "Dockerfile").read_text(encoding="utf-8")
    assert images == {*re.findall(r"--tag (\S+)", dockerfile)}
    # Spark without its part for Kubernetes would not know the master.
    assert [*(Path(spark_file).parent / "jars").glob("spark-kubernetes_*.jar")]


def test_the_image_has_what_both_need() -> None:
    lines = [line for line in (CONF / "Dockerfile").read_text(encoding="utf-8").splitlines() if line]
    steps = [line.split()[0] for line in lines if not line.startswith("#")]
    assert steps[0] == "FROM" and {*steps} <= {"FROM", "USER", "COPY", "RUN", "ENV", "WORKDIR"}
    spark = next(line for line in lines if line.startswith("FROM"))
    assert re.fullmatch(r"FROM apache/spark:3\.5\.\d+-scala2\.12-java17-python3-ubuntu", spark)
