"""The Kubernetes manifests of docs/operate.md fit Kubernetes' own schemas and give their containers no rights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

PAGE = (Path(__file__).resolve().parents[2] / "docs/operate.md").read_text()


def manifests() -> list[dict[str, Any]]:
    section = PAGE.partition("\n## Kubernetes\n")[2]
    block = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert block
    return list(yaml.safe_load_all(block[1]))


@pytest.mark.parametrize(
    "manifest", manifests(), ids=lambda manifest: f"{manifest['kind']}-{manifest['metadata']['name']}"
)
def test_manifest_fits_the_schema(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.34", strict=True)


def test_containers_run_without_rights() -> None:
    pods = [manifest["spec"]["template"]["spec"] for manifest in manifests() if "template" in manifest["spec"]]
    assert len(pods) == 3
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
