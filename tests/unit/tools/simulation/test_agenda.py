"""The agenda: by time, and among equals by who entered first."""

from kubesched.tools.simulation.agenda import Agenda


def test_what_has_the_same_time_happens_in_the_order_of_entry() -> None:
    agenda, done = Agenda(), []
    for name, at in (("c", 2.0), ("a", 1.0), ("b", 1.0), ("later", 3.0)):
        agenda.add(at, lambda name=name: done.append(name))
    assert agenda.next_time == 1.0
    assert agenda.do_due(2.0) and done == ["a", "b", "c"]
    assert not agenda.do_due(2.9) and len(agenda) == 1


def test_what_is_entered_for_now_happens_now() -> None:
    agenda, done = Agenda(), []
    agenda.add(1.0, lambda: agenda.add(1.0, lambda: done.append("second")))
    agenda.do_due(1.0)
    assert done == ["second"] and agenda.next_time is None
