"""One turn, handed round between threads: in which order, who is woken, and how it ends."""

from __future__ import annotations

import threading

import pytest

from gluonize.judge.machine.coroutines import Abandoned, Scheduler


def ran(count: int, schedule: str, body) -> tuple[list, Scheduler]:
    """What the coroutines told, in order; `body(scheduler, me, tell)` is one of them."""
    scheduler, told = Scheduler(count, schedule), []

    def one(me: int) -> None:
        error: BaseException | None = None
        try:
            scheduler.start(me)
            body(scheduler, me, told.append)
        except (Abandoned, ValueError) as raised:
            told.append((me, type(raised).__name__))
            error = raised
        finally:
            scheduler.finish(me, error)

    threads = [threading.Thread(target=one, args=(me,), daemon=True) for me in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert not any(thread.is_alive() for thread in threads), "some never end"
    return told, scheduler


@pytest.mark.parametrize("schedule, order", [("forward", [0, 1, 2]), ("backward", [2, 1, 0])])
def test_the_turn_goes_round_in_a_fixed_order(schedule: str, order: list[int]):
    def body(scheduler, me, tell):
        for _ in range(3):
            tell(me)
            scheduler.hand_on(me)

    assert ran(3, schedule, body)[0] == order * 3


def test_only_the_schedule_that_alternates_pauses():
    def body(scheduler, me, tell):
        for _ in range(2):
            tell(me)
            scheduler.pause(me)

    assert ran(2, "forward", body)[0] == [0, 0, 1, 1]
    assert ran(2, "alternating", body)[0] == [0, 1, 0, 1]


def test_who_has_the_turn_wakes_nobody_but_the_next():
    """However many wait."""
    awake = []

    def body(scheduler, me, tell):
        for _ in range(3):
            awake.append(sum(not gate.locked() for gate in scheduler.gates))
            scheduler.hand_on(me)

    ran(64, "forward", body)
    assert set(awake) == {0}


def test_all_that_wait_for_nothing_are_told_so():
    told, scheduler = ran(
        3, "forward", lambda s, me, tell: tell((me, s.wait(me, "a change") and s.wait(me, "another")))
    )
    assert (0, False) in told and scheduler.error is None


def test_what_one_does_is_waited_for():
    done: list[int] = []

    def body(scheduler, me, tell):
        if me == 2:
            scheduler.hand_on(me)
            done.append(me)
            return scheduler.moved(me)
        while not done:
            assert scheduler.wait(me, "it")
        tell(me)

    assert ran(3, "forward", body)[0] == [0, 1]


def test_one_that_fails_ends_all():
    def body(scheduler, me, tell):
        scheduler.hand_on(me)
        if me == 1:
            raise ValueError("of the second")
        try:
            scheduler.hand_on(me)
        finally:
            if scheduler.error is not None:
                with pytest.raises(Abandoned):  # however often it asks
                    scheduler.hand_on(me)
                with pytest.raises(Abandoned):
                    scheduler.wait(me, "anything")

    told, scheduler = ran(4, "forward", body)
    assert sorted(told) == [(0, "Abandoned"), (1, "ValueError"), (2, "Abandoned"), (3, "Abandoned")]
    assert str(scheduler.error) == "of the second"
