"""Going back in a history gives the very cluster that was there, and coming back the one that is."""

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from test_snapshot import described

from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.assembly import assemble, default_configuration
from kubesched.testing import clusters
from kubesched.tools.shadow.changes import Change, Key
from kubesched.tools.shadow.history import History

State = dict[Key, Any]


def store_of(state: State) -> Store:
    store = Store()
    for obj in state.values():
        if not isinstance(obj, Pod) or obj.spec.node_name:
            store.put(obj)
    return store


def next_change(random: Random, state: State, at: float) -> Change:
    """Let something happen: nodes and pods come, change and go; pods that wait are placed."""
    roll, key = random.random(), random.choice(list(state)) if state else None
    if key is not None and roll < 0.2:
        return Change(at, key[0], state[key], None)
    if key is not None and roll < 0.6 and isinstance(old := state[key], Pod):
        node_name = old.spec.node_name or random.choice(("n0", "n1", "n2"))
        status = msgspec.structs.replace(old.status, nominated_node_name=random.choice(("", "n1")))
        return Change(
            at,
            "Pod",
            old,
            msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, node_name=node_name), status=status),
        )
    if roll < 0.75:
        new: Any = clusters.random_node(random, f"n{random.randrange(4)}")
    else:
        on = random.choice(("", "", "n0", "n1"))
        new = clusters.random_pod(random, f"p{int(at)}", on=on)
    kind = new.kind
    return Change(at, kind, state.get((kind, new.key)), new)


def without(changes: list[Change], start: State, undone: set[int]) -> State:
    state, stopped = dict(start), set[Key]()
    for number, change in enumerate(changes):
        if number in undone:
            stopped.add(change.key)
        if change.key in stopped:
            continue
        state.pop(change.key, None)
        if change.new is not None:
            state[change.key] = change.new
    return state


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_state_without_some_changes_is_the_one_built_without_them(seed: int) -> None:
    random = Random(seed)
    gates = config.Gates.defaults()
    history = History(assemble(default_configuration(gates), gates), keep_seconds=1000.0)
    changes: list[Change] = []
    for at in range(30):
        newest = without(changes, {}, set())
        changes.append(next_change(random, newest, float(at)))
        history.take(changes[-1])
        if random.random() < 0.5:
            since = random.randrange(len(changes))
            undone = {n for n in range(since, len(changes)) if random.random() < random.choice((0.1, 0.9))}
            versions: State = {}
            for number in sorted(undone):
                versions.setdefault(changes[number].key, changes[number].old)
            history.show(versions)
            state = without(changes, {}, undone)
            assert described(history.store) == described(store_of(state)), f"seed {seed}, after {at}"
            nominated = {
                o.key: o.status.nominated_node_name for o in state.values() if isinstance(o, Pod) and not o.spec.node_name
            }
            expected = {key: node_name for key, node_name in nominated.items() if node_name}
            found = {p.key: name for name in history.nominated.nodes() for p in history.nominated.on_node(name)}
            assert found == expected
        if random.random() < 0.5:
            history.show_newest()
            assert described(history.store) == described(store_of(without(changes, {}, set())))
