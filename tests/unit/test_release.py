"""What a release is made of: a version, locks with hashes, an image by digest, a README that an index can show."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def name_of(requirement: str) -> str:
    return re.split(r"[\s\[<>=!;~]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def locked(lock: Path) -> dict[str, str]:
    """Return what a lock holds: by name, the text of its entry."""
    entries = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip())
    return {name_of(entry): entry for entry in entries}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_package_has_a_version_and_hashes_and_no_index_is_named(lock: Path) -> None:
    for entry in locked(lock).values():
        assert re.match(r"[\w.-]+==[\w.!+]+ ", entry) and "--hash=sha256:" in entry, entry
    assert "://" not in lock.read_text(encoding="utf-8") and "index" not in lock.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("image.txt", ("dra",)), ("ci.txt", ("dev", "docs", "dra", "experiments", "gym", "oidc", "otel", "ray"))],
)
def test_locks_hold_everything_that_the_project_asks_for(lock: str, extras: tuple[str, ...]) -> None:
    project = PROJECT["project"]
    asked = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    missing = {name_of(one) for one in asked} - {"kubesched"} - set(locked(ROOT / "requirements" / lock))
    assert not missing, "run `make lock`"


def test_what_builds_the_package_is_what_is_locked_for_it() -> None:
    asked = [
        line
        for line in (ROOT / "requirements" / "build.in").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert asked == PROJECT["build-system"]["requires"]
    for lock in ("build.txt", "ci.txt"):
        assert {name_of(one) for one in asked} <= set(locked(ROOT / "requirements" / lock))


def test_the_version_is_said_once_and_a_tag_overrides_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "version" in PROJECT["project"]["dynamic"] and PROJECT["tool"]["hatch"]["version"]["path"] == "tools/version.py"
    tree = tmp_path / "tree"
    (tree / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "version.py", tree / "tools")

    def said() -> str:
        words = [sys.executable, str(tree / "tools" / "version.py")]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
        subprocess.run(["git", "-C", str(tree), *who, *words], capture_output=True, check=True)

    monkeypatch.delenv("GIT_TAG", raising=False)
    upcoming = runpy.run_path(str(tree / "tools" / "version.py"))["NEXT"]
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", upcoming) and said() == upcoming
    git("init")
    git("commit", "--allow-empty", "-m", "one")
    assert said() == upcoming
    git("tag", "v7.8.9", "-m", "a release")
    assert said() == "7.8.9"
    git("commit", "--allow-empty", "-m", "two")
    assert said() == upcoming
    monkeypatch.setenv("GIT_TAG", "v1.2.3")
    assert said() == "1.2.3"


def test_chart_manifests_and_changelog_are_of_the_same_version() -> None:
    upcoming = runpy.run_path(str(ROOT / "tools" / "version.py"))["NEXT"]
    plugin = runpy.run_path(str(ROOT / "tools" / "build_kubectl_plugin.py"))
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "kubesched" / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["appVersion"], chart["version"]) == (upcoming, plugin["semantic"](upcoming))
    for file in (*(ROOT / "deploy" / "kustomize").rglob("*.yaml"), ROOT / "deploy" / "static-pod" / "kubesched.yaml"):
        text = file.read_text(encoding="utf-8")
        assert set(re.findall(r"(?:image: kubesched:|newTag: )(\S+)", text)) <= {upcoming}, file
    assert f"\n## {upcoming}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def built(folder: Path, tree: Path, **environment: str) -> dict[str, str]:
    """Return the sums of what is built from a tree: the sdist, and from that the wheel."""
    for module in ("build", "hatchling"):
        pytest.importorskip(module)
    words = [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", str(folder), str(tree)]
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


BUILT_FROM = ("kubesched", "tools", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md")
GIVEN = {"GIT_TAG": "v1.2.3", "SOURCE_DATE_EPOCH": "1700000000", "PROJECT_URL": "https://example.com/k"}


def copied(tree: Path) -> Path:
    """Return a folder with a copy of what a package is built from, with the time of the copy, which must not matter."""
    tree.mkdir()
    for part in BUILT_FROM:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, tree / part, ignore=ignored, copy_function=shutil.copy)
        else:
            shutil.copy(ROOT / part, tree / part)
    return tree


def test_the_same_tree_builds_the_same_bytes_and_the_version_that_it_is_told(tmp_path: Path) -> None:
    sums = [
        built(tmp_path / f"dist-{name}", copied(tmp_path / name), **GIVEN, KUBESCHED_KERNELS="numpy") for name in ("one", "two")
    ]
    assert sums[0] == sums[1]
    assert set(sums[0]) == {"kubesched-1.2.3-py3-none-any.whl", "kubesched-1.2.3.tar.gz"}
    with zipfile.ZipFile(tmp_path / "dist-one" / "kubesched-1.2.3-py3-none-any.whl") as wheel:
        told = wheel.read("kubesched-1.2.3.dist-info/METADATA").decode()
        assert {"kubesched/py.typed", "kubesched/server/web/ui/index.html"} <= set(wheel.namelist())
    assert "Project-URL: Source, https://example.com/k" in told and "](docs/" not in told
    assert "Provides-Extra: dra" in told


@pytest.mark.parametrize("compiler", ["", "false", "no-such-compiler"])
def test_a_wheel_has_what_could_be_compiled_and_is_for_everybody_where_nothing_could(tmp_path: Path, compiler: str) -> None:
    if not compiler and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    built(tmp_path / "dist", copied(tmp_path / "tree"), **GIVEN, CC=compiler)
    (file,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(file) as wheel:
        libraries = [name for name in wheel.namelist() if name.endswith(".so")]
    assert libraries == ([] if compiler else ["kubesched/scheduler/kernels/_compiled.abi3.so"])
    assert file.name.startswith("kubesched-1.2.3-py3-none-any" if compiler else "kubesched-1.2.3-cp311-abi3-linux_")


def test_wheels_for_other_platforms_have_their_library_and_its_tag(tmp_path: Path) -> None:
    library = tmp_path / "_compiled.pyd"
    library.write_bytes(b"compiled elsewhere")
    given = {**GIVEN, "KUBESCHED_LIBRARY": str(library), "KUBESCHED_PLATFORM": "win_amd64"}
    built(tmp_path / "dist", copied(tmp_path / "tree"), **given)
    with zipfile.ZipFile(tmp_path / "dist" / "kubesched-1.2.3-cp311-abi3-win_amd64.whl") as wheel:
        assert wheel.read("kubesched/scheduler/kernels/_compiled.pyd") == b"compiled elsewhere"
        assert "Tag: cp311-abi3-win_amd64" in wheel.read("kubesched-1.2.3.dist-info/WHEEL").decode()
        assert not [name for name in wheel.namelist() if name.endswith(".so")]


def test_what_the_image_leaves_out_is_not_missed(tmp_path: Path) -> None:
    cel = pytest.importorskip("cel_expr_python")
    shutil.copytree(next(iter(cel.__path__)), tmp_path / cel.__name__)
    subprocess.run([sys.executable, ROOT / "tools" / "trim_install.py", tmp_path], check=True, capture_output=True)
    assert not [*tmp_path.glob("cel_expr_python/ext/ext_math*")]
    program = (
        "from kubesched.kube.cel.checking import check; check('device.driver == \"x\"')\n"
        "import cel_expr_python.cel; print(cel_expr_python.cel.__file__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert done.stdout.startswith(str(tmp_path))


def test_the_image_is_built_from_a_digest_and_from_hashes() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG PYTHON=[\w.-]+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"python:${PYTHON}"}
    for line in re.findall(r"pip install [^&\n]*", text):
        assert "--require-hashes" in line or "--no-index" in line, line


def test_the_readme_on_an_index_has_no_link_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    interface = SimpleNamespace(MetadataHookInterface=object)  # the hook runs where hatchling is, the tests do not need it
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    hook = runpy.run_path(str(ROOT / "tools" / "index_readme.py"))
    told = hook["with_links"]((ROOT / "README.md").read_text(encoding="utf-8"), "https://example.com/kubesched", "v1.2.3")
    targets = re.findall(r"\]\(([^)]+)\)", told)
    assert len(targets) > 30
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert "(https://example.com/kubesched/raw/v1.2.3/docs/page.png)" in told
    assert "(https://example.com/kubesched/blob/v1.2.3/docs/how-to/why.md)" in told
    assert "(https://example.com/kubesched/tree/v1.2.3/docs/decisions)" in told


def test_the_bill_of_materials_says_of_which_version_it_is_and_what_that_is_made_of() -> None:
    complete = runpy.run_path(str(ROOT / "tools" / "write_sbom.py"))["complete"]
    listed = {
        "metadata": {"component": {"bom-ref": "root", "name": "kubesched"}},
        "components": [{"bom-ref": "L1", "name": "a"}, {"bom-ref": "L2", "name": "b"}],
        "dependencies": [{"ref": "L1"}, {"ref": "L2"}, {"ref": "root"}],
    }
    made = complete(listed, "1.2.3")
    assert made["metadata"]["component"]["purl"] == "pkg:pypi/kubesched@1.2.3"
    assert made["dependencies"] == [{"ref": "root", "dependsOn": ["L1", "L2"]}, {"ref": "L1"}, {"ref": "L2"}]


WORKFLOW = ROOT / ".github" / "workflows" / "release.yaml"


def test_the_release_workflow_pins_what_it_runs_and_asks_for_no_more_rights_than_it_needs() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
                assert re.search(rf"{step['uses']} # v\d+\.\d+\.\d+$", text, re.MULTILINE), f"{step['uses']}: of which version?"
            assert "${{" not in step.get("run", ""), "what comes from outside is data: hand it to a command by `env`"
    made = set(re.findall(r"make ([\w-]+)", text))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert made and made <= targets
