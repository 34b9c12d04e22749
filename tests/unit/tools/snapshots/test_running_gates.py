"""Gates read off what a running scheduler serves."""

import pytest
from click.testing import CliRunner

from kubesched.cli.config import command
from kubesched.errors import ConfigError
from kubesched.tools.snapshots.running_gates import gates_of_running

METRICS = """# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0
kubernetes_feature_enabled{name="DRAConsumableCapacity",stage="BETA"} 0
kubernetes_feature_enabled{name="GenericWorkload",stage="ALPHA"} 1
kubernetes_feature_enabled{name="KubeletSomething",stage="BETA"} 1
scheduler_pending_pods{queue="active"} 0
"""
FLAGZ = """
kube-scheduler flags
Warning: This endpoint is not meant to be machine parseable.

authentication-kubeconfig=
feature-gates=DRAConsumableCapacity=false,KubeletSomething=true
v=2
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (METRICS, "DRAConsumableCapacity=false,GenericWorkload=true"),
        (FLAGZ, "DRAConsumableCapacity=false"),
        ("feature-gates=\n", ""),
    ],
)
def test_gates_that_a_scheduler_reads_are_taken(text, expected):
    assert gates_of_running(text, "m") == expected


def test_what_is_neither_metrics_nor_flagz_is_refused():
    with pytest.raises(ConfigError, match=r"page\.html: no kubernetes_feature_enabled"):
        gates_of_running("<html>", "page.html")


def test_the_command_line_reads_them_from_a_file(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    (tmp_path / "metrics").write_text(METRICS)
    asked = ["check", str(config), "--feature-gates", f"@{tmp_path / 'metrics'}"]
    assert CliRunner().invoke(command, asked).exit_code == 0
    broken = CliRunner().invoke(command, [*asked[:-1], f"@{config}"])
    assert broken.exit_code != 0
    assert "no kubernetes_feature_enabled" in f"{broken.output}{broken.exception}"
