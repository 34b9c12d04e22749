"""Numbers for values."""

from __future__ import annotations

from kubesched.scheduler.cluster import Store
from kubesched.scheduler.cluster.intern import Leases
from kubesched.testing import near, node, pod, taint


def test_a_number_that_nobody_holds_is_given_to_the_next_value() -> None:
    book = Leases("none", is_first=True)
    a, b = book.take("a"), book.take("b")
    assert (a, b, book.take("a"), book.take("none")) == (1, 2, 1, 0)
    book.give_back(a)
    assert book.values == ["none", "a", "b"], "somebody holds it still"
    book.give_back(a)
    assert book.values == ["none", "none", "b"]
    assert (book.take("c"), book.take("a")) == (1, 3)
    book.give_back(0)
    assert book.take("none") == 0


def test_asking_gives_no_number() -> None:
    book = Leases("")
    assert (book.find("a"), book.find(""), len(book), book.is_empty) == (-1, -1, 0, True)
    assert (book.take("a"), book.find("a"), book.is_empty) == (0, 0, False)
    book.give_back(0)
    assert (book.values, book.find("a"), book.is_empty) == ([""], -1, True)


def test_labels_and_resources_of_nodes_that_are_gone_leave_nothing() -> None:
    store = Store()
    store.put_node(node("a", zone="z"))
    n_columns = len(store.nodes.table.columns)
    for i in range(50):
        store.put_node(node(f"b{i}", labels={f"own/{i}": "x", "rank": str(i)}, offers={f"example.com/r{i}": "1"}))
        if i % 3 == 0:
            store.put_node(node(f"b{i}", labels={f"own/{i}": "y", "rank": str(i + 1)}, zone=f"z{i}"))
        nodes = store.snapshot()
        column = nodes.label("rank")
        assert column is not None and column.values.values[nodes.code_at("rank", 1)] == str(i + (i % 3 == 0))
        store.remove_node(f"b{i}")
    nodes = store.snapshot()
    assert nodes.label_keys == ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    assert [nodes.n_values(key) <= 3 for key in nodes.label_keys] == [True, True]
    assert set(store.templates.resources.by_name()) == {"cpu", "memory", "ephemeral-storage"}
    assert len(store.nodes.table.columns) <= n_columns + 2, "one more resource at a time"


def test_taints_that_carry_a_time_do_not_pile_up() -> None:
    store = Store()
    store.put_node(node("a"))
    for second in range(50):
        store.put_node(node("b", taints=[taint("to-be-deleted", str(second))]))
        assert store.snapshot().taint_sets[store.snapshot().taint_set[1]] == (taint("to-be-deleted", str(second)),)
        if second % 3 == 0:
            store.remove_node("b")
    assert len(store.snapshot().taint_sets) <= 3


def test_pods_that_differ_in_nothing_a_plugin_reads_share_a_template() -> None:
    store = Store()
    first = store.view(pod("web-1", requests={"cpu": "1"}, labels={"app": "web"}))
    assert store.view(pod("web-2", requests={"cpu": "1"}, labels={"app": "web"}, on="a")).template is first.template
    assert store.view(pod("web-3", requests={"cpu": "2"}, labels={"app": "web"})).template is not first.template


def test_pods_of_equal_namespace_and_labels_are_one_class_whatever_they_ask_for() -> None:
    store = Store()

    kept = []  # what nobody has is forgotten

    def label_class(**fields: object) -> int:
        kept.append(store.view(pod("p", **fields)))  # type: ignore[arg-type]
        return kept[-1].template.class_id

    plain = label_class(labels={"app": "web", "tier": "x"})
    assert label_class(labels={"tier": "x", "app": "web"}, requests={"cpu": "1"}) == plain
    assert label_class(labels={"app": "web"}) != plain
    assert label_class(labels={"app": "web", "tier": "x"}, namespace="other") != plain
    assert label_class(labels={"app": "web", "tier": "x"}, deleted_at="2026-01-01T00:00:00Z") != plain


def test_pods_without_affinity_are_in_group_zero() -> None:
    store = Store()
    assert store.view(pod("p")).template.affinity_group.number == 0
    first = store.view(pod("p", affinity=near({"app": "web"})))
    group = first.template.affinity_group
    assert group.number > 0
    assert store.view(pod("q", affinity=near({"app": "web"}), labels={"app": "x"})).template.affinity_group is group
    assert store.view(pod("q", affinity=near({"app": "web"}), namespace="b")).template.affinity_group is not group
