"""Write the reference pages that follow from the code.

In: plugin classes, their arguments, messages and wake-ups; the types of the configuration; the table of gates; the words of
tools/reference_texts.yaml. Out: docs/plugin-reference/*.md, docs/configuration-reference.md and the generated part of
docs/compatibility.md.
    python tools/generate_reference.py           # writes them (make reference)
tests/docs/test_site.py compares them with what would be written; a field or a plugin without words is refused here.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
import typing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from messages import FILLED_IN, all_messages  # noqa: E402

from kubesched.scheduler import config  # noqa: E402
from kubesched.scheduler.config.args import Args  # noqa: E402
from kubesched.scheduler.config.catalogue import _DEFAULTS, at_release  # noqa: E402
from kubesched.scheduler.config.printing import effective  # noqa: E402
from kubesched.scheduler.config.releases.gates import GATES, NEEDS, NO_EFFECT, NOT_OURS, OUR_GATES, Stage, spec_of  # noqa: E402
from kubesched.scheduler.config.releases.versions import RELEASES, Behaviour, text_of  # noqa: E402
from kubesched.scheduler.config.types import KubeSchedulerConfiguration, PluginSet  # noqa: E402
from kubesched.scheduler.engine.assembly import default_configuration, registry_with  # noqa: E402
from kubesched.scheduler.engine.explaining.waking import wakes_on  # noqa: E402
from kubesched.scheduler.framework.plugin import Plugin  # noqa: E402
from kubesched.scheduler.framework.runtime.building import catalogue  # noqa: E402
from kubesched.scheduler.framework.runtime.registry import point_name, points_of, purpose_of  # noqa: E402

TEXTS = yaml.safe_load((ROOT / "tools" / "reference_texts.yaml").read_text(encoding="utf-8"))
NOTE = (
    "<!-- written by tools/generate_reference.py: change the code or tools/reference_texts.yaml, then `make reference` -->\n\n"
)
BEGIN, END = "<!-- begin: generated -->\n", "<!-- end: generated -->"
_SHARED = {"csi_translation.py": "NodeVolumeLimits"}
"""Whose messages stand in files that plugins share."""
_PLAIN = {int: "integer", str: "text", bool: "true or false", float: "number", bytes: "base64"}


def pages() -> dict[Path, str]:
    """Return every generated page."""
    folder = ROOT / "docs" / "plugin-reference"
    made = {folder / f"{file_of(cls)}.md": plugin_page(cls) for cls in registry_with()}
    made[folder / "README.md"] = index_page()
    made[ROOT / "docs" / "configuration-reference.md"] = configuration_page()
    table = ROOT / "docs" / "compatibility.md"
    before, _, rest = table.read_text(encoding="utf-8").partition(BEGIN)
    made[table] = before + BEGIN + gates_section() + END + rest.partition(END)[2]
    return made


# Plugins


def file_of(cls: type[Plugin]) -> str:
    """Return the name of a plugin's file or folder, which is that of its page."""
    _, _, where = cls.__module__.removeprefix("kubesched.scheduler.").partition("plugins.")
    return (where or cls.__module__.removeprefix("kubesched.contrib.")).partition(".")[0]


def index_page() -> str:
    rows = [
        f"| [{cls.name}]({file_of(cls)}.md) | {_marked_points(cls)} | {_weight(cls) or ''} | {purpose_of(cls)} |"
        for cls in registry_with()
    ]
    about = (
        "The plugins of the tree in the default order of 1.36: where they act, their default weight, what they do.\n"
        "In 1.37 NodeName comes before NodeUnschedulable, and the points marked (1.37) are added.\n"
        "`kubesched plugins list` prints the same. [Writing plugins](../plugins.md) says how to add one."
    )
    head = "| plugin | extension points | weight | purpose |\n|---|---|---:|---|"
    return f"# Every plugin\n\n{NOTE}{about}\n\n{head}\n" + "\n".join(rows) + "\n"


def plugin_page(cls: type[Plugin]) -> str:
    texts = TEXTS["plugins"].get(cls.name)
    if texts is None:
        raise SystemExit(f"tools/reference_texts.yaml: plugins has no words for {cls.name}")
    parts = [f"# {cls.name}\n\n{NOTE}{_story(cls, texts.get('about', ''))}\n", _facts(cls)]
    if "scores" in texts:
        parts.append(f"## Scores\n\n{texts['scores']} The result is between 0 and 100, times the weight.\n")
    if cls.Args is not None:
        parts.append(_arguments(cls.name, cls.Args, texts.get("args", {})))
    parts.append(_messages(cls))
    parts.append(_wakeups(cls))
    if "example" in texts:
        (file,) = [word for word in texts["example"].split() if re.fullmatch(rf".*/{file_of(cls)}\.\w+", word)]
        link = f"[{Path(file).name}](../{Path(file).relative_to('docs')})"
        parts.append(f"## Example\n\nThe cluster is {link}.\n\n{_session(texts['example'])}")
    else:
        parts.append(f"## Example\n\n```python\n{texts['python']}```\n")
    return "\n".join(parts)


def _story(cls: type[Plugin], about: str) -> str:
    """Return the first paragraph of a plugin's file, and what users should know: `about`, or the rest of that text."""
    story = inspect.getdoc(inspect.getmodule(cls)) or ""
    if cls.__module__.endswith(f"{file_of(cls)}.plugin") and file_of(cls) in ("dynamic_resources", "volume_binding"):
        story = inspect.getdoc(sys.modules[cls.__module__.rpartition(".")[0]]) or story
    first, _, rest = story.removeprefix(f"{cls.name}: ").partition("\n\n")
    first = first[0].upper() + first[1:]
    return f"{first}\n\n{about or rest}".strip()


def _facts(cls: type[Plugin]) -> str:
    default = cls.name in _default_profile().plugin_names
    gate = next((gate for name, _, gate in _DEFAULTS if name == cls.name), "")
    later = _later_points(cls)
    rows = [
        ("extension points", ", ".join(point for point in _points(cls) if point not in later)),
        ("since 1.37 also at", ", ".join(sorted(later))),
        ("on by default", ("yes" if default else "no") + (f"; gate `{gate}`" if gate else "")),
        ("default weight", str(_weight(cls) or "")),
        ("code", f"`{_code(cls)}`"),
    ]
    return "| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows if value)


def _code(cls: type[Plugin]) -> str:
    folder, name, _ = cls.__module__.replace(".", "/").partition(file_of(cls))
    path = folder + name
    return path if (ROOT / path).is_dir() else f"{path}.py"


def _points(cls: type[Plugin]) -> list[str]:
    return [point_name(point) for point in points_of(cls)]


def _later_points(cls: type[Plugin]) -> set[str]:
    """Return the points at which a plugin of the tree acts only since the newest release."""
    first, newest = (at_release(catalogue(registry_with()), version(RELEASES))[cls.name].points for version in (min, max))
    return {point_name(point) for point in newest - first}


def _marked_points(cls: type[Plugin]) -> str:
    later = _later_points(cls)
    return ", ".join(f"{point} (1.37)" if point in later else point for point in _points(cls))


@cache
def _default_profile() -> Any:
    (profile,) = default_configuration().profiles
    return profile


def _weight(cls: type[Plugin]) -> int:
    return next((entry.weight for entry in _default_profile().at("score") if entry.name == cls.name), 0)


def _arguments(name: str, args: type[Args], about: dict[str, str]) -> str:
    about_all = f"`pluginConfig: [{{name: {name}, args: {{...}}}}]`, kind `{name}Args`."
    lines = [f"## Arguments\n\n{about_all}\n\n| field | type | default | |\n|---|---|---|---|"]
    default = args().defaulted(config.Gates.defaults())
    for path, type_, value in _fields(args, default, stops=("addedAffinity", "defaultConstraints[].labelSelector")):
        words = about.get(path) or _ADDED.get((name, path))
        if words is None:
            raise SystemExit(f"tools/reference_texts.yaml: plugins.{name}.args has no words for {path}")
        lines.append(f"| `{path}` | {type_} | {value} | {words} |")
    return "\n".join(lines) + "\n"


_ADDED = {
    ("NodeAffinity", "addedAffinity"): "A node affinity, as of pods, that holds for every pod of the profile beside its own."
}


def _messages(cls: type[Plugin]) -> str:
    own = sorted({m.text for m in all_messages() if _speaker(m.file) in (cls.name, file_of(cls))})
    if not own:
        return "## Messages\n\nNone of its own.\n"
    listed = "".join(f"* `{text.rstrip()}`\n" for text in own)
    page = "[troubleshooting](../troubleshooting.md)"
    about = f"`{FILLED_IN}` stands for what is filled in; {page} says what each means and what helps."
    return f"## Messages\n\n{about}\n\n{listed}"


def _speaker(file: str) -> str:
    room, _, rest = file.removeprefix("scheduler/").partition("/")
    name, _, inside = rest.partition("/")
    return _SHARED.get(inside, name.removesuffix(".py")) if room in ("plugins", "contrib") else ""


def _wakeups(cls: type[Plugin]) -> str:
    plugin = cls(cls.Args().defaulted(config.Gates.defaults()) if cls.Args is not None else None, _handle())
    found = wakes_on(types.SimpleNamespace(plugins=[plugin]), [cls.name])  # type: ignore[arg-type]
    if not ({"Filter", "PreFilter", "PreEnqueue", "Permit", "Reserve"} & set(_points(cls))) or not found:
        return "## Wake-ups\n\nIt refuses no pod, or nothing but time changes its mind.\n"
    lines = "".join(f"* {each}\n" for each in found[0].text.split("; "))
    return f"## Wake-ups\n\nA pod that it refused is tried again when\n\n{lines}"


def _handle() -> Any:
    from kubesched.scheduler.cluster import Store
    from kubesched.scheduler.engine.handle import EngineHandle
    from kubesched.testing import FakeClock, FakeRecorder, FakeWriter

    store = Store()
    return EngineHandle(store.objects, clock=FakeClock(), writer=FakeWriter(store.objects), recorder=FakeRecorder())


def _session(command: str) -> str:
    """Return a command with what it prints now, wrapped as on a terminal."""
    from unittest import mock

    sys.path.insert(0, str(ROOT / "tests" / "docs"))
    from page_shell import run

    with mock.patch("kubesched.cli.layout.columns", return_value=118):
        return f"```console\n$ {command}\n{run(command, ROOT)}```\n"


# The configuration


def configuration_page() -> str:
    default = effective(default_configuration())
    lines = []
    for path, type_, value in _fields(KubeSchedulerConfiguration, None, stops=("profiles[].pluginConfig[].args",)):
        if path not in TEXTS["fields"]:
            raise SystemExit(f"tools/reference_texts.yaml: fields has no words for {path}")
        known = _at(default, path)
        lines.append(f"| `{path}` | {type_} | {_shown(known) if known is not None else value} | {TEXTS['fields'][path]} |")
    unknown = set(TEXTS["fields"]) - {line.split("`")[1] for line in lines}
    if unknown:
        raise SystemExit(f"tools/reference_texts.yaml: the configuration has no {sorted(unknown)}")
    about = (
        "Every field of `KubeSchedulerConfiguration` (`kubescheduler.config.k8s.io/v1`), with its default.\n"
        "[Configuration](configuration.md) tells what differs from kube-scheduler; the arguments of plugins are on\n"
        "[their pages](plugin-reference/README.md). `kubesched config check FILE` validates one, `kubesched config show FILE`\n"
        "prints it with every default filled in."
    )
    sets = "A plugin set has `enabled` and `disabled`, lists of `{name, weight}`; `*` in `disabled` takes all defaults away."
    head = "| field | type | default | |\n|---|---|---|---|"
    return f"# Configuration reference\n\n{NOTE}{about}\n\n{head}\n" + "\n".join(lines) + f"\n\n{sets}\n"


def _at(document: Any, path: str) -> Any:
    for name in path.replace("[]", "").split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document if not isinstance(document, dict | list) else None


def _fields(cls: type[Any], value: Any, prefix: str = "", stops: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """Return path, type and default of every field, those of fields within fields after it."""
    hints, found = typing.get_type_hints(cls, include_extras=True), []
    for field in msgspec.structs.fields(cls):
        type_, many = _plain(hints[field.name])
        path = f"{prefix}{field.encode_name}{'[]' if many else ''}"
        here = getattr(value, field.name, None) if value is not None else field.default
        nested = isinstance(type_, type) and issubclass(type_, msgspec.Struct) and type_.__name__ not in ("Raw", "Duration")
        ends = not nested or type_ is PluginSet or path in stops
        found.append((path, _name(type_, many, nested), "" if here is msgspec.NODEFAULT else _shown(here)))
        if not ends:
            inner = here if not many and isinstance(here, type_) else type_()
            if many and isinstance(here, tuple) and here:
                inner = here[0]
            found += _fields(type_, inner, f"{path}.", stops)
    return found


def _plain(hint: Any) -> tuple[Any, bool]:
    """Return a type without what surrounds it, and whether there are many."""
    while typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _plain(next(each for each in typing.get_args(hint) if each is not type(None)))
    if typing.get_origin(hint) is tuple:
        return _plain(typing.get_args(hint)[0])[0], True
    return hint, False


def _name(type_: Any, many: bool, nested: bool) -> str:
    name = _PLAIN.get(type_) or {"Duration": "duration", "Raw": "object", "PluginSet": "plugin set"}.get(
        getattr(type_, "__name__", "")
    )
    name = name or ("object" if nested else "map")
    return f"list of {name}" if many else name


def _shown(value: Any) -> str:
    if value is None or value == () or value == "" or value == b"":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return (
            f"`{json.dumps(msgspec.to_builtins(value))}`"
            if all(isinstance(each, msgspec.Struct | str) for each in value)
            else ""
        )
    if isinstance(value, msgspec.Struct):
        return ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


# Gates


def gates_section() -> str:
    releases = sorted(RELEASES)
    heads = " | ".join(text_of(release) for release in releases)
    lines = [f"| gate | {heads} | here | needs |", "|---|" + "---|" * (len(releases) + 2)]
    for name in sorted(OUR_GATES):
        cells = " | ".join(_cell(name, release) for release in releases)
        lines.append(f"| `{name}` | {cells} | {_built(name)} | {', '.join(f'`{need}`' for need in NEEDS.get(name, ()))} |")
    others = len(GATES) - len(OUR_GATES)
    changes = "".join(f"| {_sentence(name)} |\n" for name in Behaviour.__dataclass_fields__)
    return (
        "\n"
        + "\n".join(lines)
        + f"\n\nThe {others} gates of other components are accepted and change nothing, as in kube-scheduler.\n\n"
        f"### What 1.37 does differently, without a gate\n\n| since 1.37 |\n|---|\n{changes}\n"
    )


def _cell(name: str, release: tuple[int, int]) -> str:
    spec = spec_of(name, release)
    if spec.stage in (Stage.PRE_ALPHA, Stage.GONE):
        return "" if spec.stage is Stage.PRE_ALPHA else "gone"
    stage = {"ALPHA": "alpha", "BETA": "beta", "": "GA", "DEPRECATED": "deprecated"}[spec.stage.value]
    return f"{stage}, {'on' if spec.default else 'off'}{', locked' if spec.locked else ''}"


def _built(name: str) -> str:
    if name in NO_EFFECT:
        return f"accepted; {NO_EFFECT[name]}"
    return "accepted; affects other components only" if name in NOT_OURS else "yes"


def _sentence(field: str) -> str:
    source = inspect.getsource(Behaviour)
    return " ".join(source.split(f"{field}: bool", 1)[1].split('"""')[1].split()).replace("|", "\\|")


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
