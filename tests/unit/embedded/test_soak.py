"""A store under a constant load does not grow: events have their hour, and the past is forgotten."""

from __future__ import annotations

from kubesched.embedded import ManualClock, ObjectStore

POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
MINUTES_EACH = 5


def sizes(store: ObjectStore) -> dict[str, int]:
    held = {table.name: len(table.entries) for table in store.context.storage.tables()}
    return held | {"remembered for their end": len(store.context.events)}


def n_changes(store: ObjectStore) -> int:
    return sum(len(table.feed._history) for table in store.context.storage.tables())


def test_hours_of_churn_leave_a_flat_line() -> None:
    clock = ManualClock()
    store = ObjectStore(clock, seed=1, history_limit=100_000)
    store.create("nodes", {"metadata": {"name": "n"}})
    measured, changes = [], []
    for step in range(60):  # five hours
        for i in range(20):
            name = f"pod-{i}"
            if step:
                store.delete("pods", name, "default", grace_seconds=0)
            store.create("pods", {"metadata": {"name": name}, **POD}, "default")
            store.bind("default", name, "n")
            involved = {"kind": "Pod", "name": name, "namespace": "default"}
            event = {"metadata": {"name": f"{name}.{step}"}, "involvedObject": involved, "reason": "Scheduled"}
            store.create("events", event, "default")
        clock.advance(MINUTES_EACH * 60)
        measured.append(sizes(store))
        changes.append(n_changes(store))
    assert measured[5]["events"] < measured[11]["events"], "the first hour fills it"
    assert all(later == measured[12] for later in measured[13:]), "from then on it stays as it is"
    assert measured[12]["events"] <= 20 * (60 // MINUTES_EACH + 1)
    assert max(changes[3:]) < 3 * changes[0], "of five to ten minutes, which are one or two steps"
