"""The credential loaders come without the generated client, and leave the library whole for everybody else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cel_expr_python
import kubernetes_asyncio
import pytest

ALONE = """
import json, sys
from kubesched.kube.client.kubeconfig_loading import credential_loaders
loaders = credential_loaders()
left = [name for name in sys.modules if name.startswith("kubernetes_asyncio")]
import cel_expr_python
import kubernetes_asyncio
print(json.dumps({
    "left": left,
    "same": credential_loaders() is loaders,
    "ours": loaders.kubeconfig.KubeConfigLoader.__name__,
    "whole": kubernetes_asyncio.config.kube_config.Configuration is kubernetes_asyncio.client.Configuration,
    "apart": kubernetes_asyncio.config.kube_config is not loaders.kubeconfig,
}))
"""
AFTER_SOMEBODY_ELSE = """
import json, sys
import cel_expr_python
import kubernetes_asyncio
from kubesched.kube.client.kubeconfig_loading import credential_loaders
print(json.dumps(credential_loaders().kubeconfig is kubernetes_asyncio.config.kube_config))
"""
WITH_ANOTHER_LIBRARY = """
import json
import os
import re
from kubesched.kube.client import kubeconfig_loading
kubeconfig_loading._LEFT_OUT = {"kubernetes_asyncio.client": ()}  # as if the loaders wanted names that we do not know of
print(json.dumps(kubeconfig_loading.credential_loaders().kubeconfig.ApiClient.__name__))
"""

WITHOUT_A_HOME = """
import json, os, pwd
del os.environ["HOME"]
pwd.getpwuid = {}.__getitem__  # it has a name for nobody
from kubesched.kube.client.kubeconfig_loading import credential_loaders
print(json.dumps(credential_loaders().kubeconfig.KubeConfigLoader.__name__))
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (ALONE, {"left": [], "same": True, "ours": "KubeConfigLoader", "whole": True, "apart": True}),
        (AFTER_SOMEBODY_ELSE, True),
        (WITH_ANOTHER_LIBRARY, "ApiClient"),
        (WITHOUT_A_HOME, "KubeConfigLoader"),
    ],
    ids=["alone", "after somebody else imported it", "a version that wants more", "a user without a name or a home"],
)
def test_the_loaders_are_imported(program: str, expected: object) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == expected


def test_what_the_image_leaves_out_is_not_missed(tmp_path: Path) -> None:
    tools = Path(__file__).parents[4] / "tools"
    for library in (kubernetes_asyncio, cel_expr_python):
        shutil.copytree(next(iter(library.__path__)), tmp_path / library.__name__)
    subprocess.run([sys.executable, tools / "trim_install.py", tmp_path], check=True, capture_output=True)
    assert not (tmp_path / "kubernetes_asyncio" / "client").exists()
    assert not [*tmp_path.glob("cel_expr_python/ext/ext_math*")]
    program = (
        "from kubesched.kube.client.kubeconfig_loading import credential_loaders\n"
        "print(credential_loaders().kubeconfig.__file__)\n"
        "from kubesched.kube.cel.checking import check; check('device.driver == \"x\"')\n"
        "import cel_expr_python.cel; print(cel_expr_python.cel.__file__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[4]}"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    assert all(line.startswith(str(tmp_path)) for line in done.stdout.splitlines())
