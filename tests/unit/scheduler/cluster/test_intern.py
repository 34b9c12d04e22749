"""Numbers for values."""

from __future__ import annotations

from kubesched.scheduler.cluster import Store
from kubesched.scheduler.cluster.intern import Interner, Leases
from kubesched.testing import near, node, pod, taint


def test_a_value_keeps_the_number_of_its_first_appearance() -> None:
    book = Interner("cpu")
    assert [book.id(name) for name in ("memory", "cpu", "memory", "disk")] == [1, 0, 1, 2]
    assert book.values == ["cpu", "memory", "disk"]
    assert len(book) == 3


def test_asking_gives_no_number() -> None:
    book: Interner[str] = Interner()
    assert book.find("cpu") == -1
    assert len(book) == 0


def test_a_number_that_nobody_holds_is_given_to_the_next_value() -> None:
    book = Leases("none")
    a, b = book.take("a"), book.take("b")
    assert (a, b, book.take("a"), book.take("none")) == (1, 2, 1, 0)
    book.give_back(a)
    assert book.values == ["none", "a", "b"], "somebody holds it still"
    book.give_back(a)
    assert book.values == ["none", "none", "b"]
    assert (book.take("c"), book.take("a")) == (1, 3)
    book.give_back(0)
    assert book.take("none") == 0


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
