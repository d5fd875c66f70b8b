"""Whose code it is that runs: contexts, tasks, threads, executors, defaults."""

import asyncio
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from weakref import ref

import pytest

from rewind.gateway.client import Peer
from rewind.inprocess.redirect import callers as redirect_callers
from rewind.inprocess.redirect.callers import (
    REFUSED,
    current_caller,
    forget,
    is_certain,
    mark_unseen,
    our_context,
    ourselves,
    owner,
    set_owner,
)
from rewind.inprocess.run import Guard


@pytest.fixture
def one() -> Iterator[Guard]:
    guard = Guard()
    guard.start()
    yield guard
    guard.finish()


@pytest.fixture
def other() -> Iterator[Guard]:
    guard = Guard()
    guard.start()
    yield guard
    guard.finish()


def in_thread() -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(current_caller()))
    thread.start()
    thread.join()
    return found[0]


def test_code_without_a_run_is_nobodys(one: Guard) -> None:
    assert current_caller() is None
    assert in_thread() is None


def test_threads_take_their_callers_run_along(one: Guard) -> None:
    token = one.activate()
    assert current_caller() is one
    assert in_thread() is one
    one.deactivate(token)
    assert in_thread() is None


def test_a_thread_is_left_as_it_was(one: Guard) -> None:
    class Counting(threading.Thread):
        ran = 0

        def run(self) -> None:
            Counting.ran += current_caller() is one

    token = one.activate()
    thread = Counting()
    thread.start()
    thread.join()
    assert Counting.ran == 1
    assert "run" not in vars(thread)
    with pytest.raises(RuntimeError, match="once"):
        thread.start()
    assert "run" not in vars(thread)
    one.deactivate(token)


def test_an_executors_thread_works_for_whoever_submits(one: Guard, other: Guard) -> None:
    with ThreadPoolExecutor(1) as pool:
        found = []
        for guard in (one, other):
            token = guard.activate()
            found.append(pool.submit(current_caller).result())
            guard.deactivate(token)
        found.append(pool.submit(current_caller).result())
    assert found == [one, other, None]


def test_tasks_of_one_loop_belong_to_different_runs(one: Guard, other: Guard) -> None:
    async def within(guard: Guard) -> list[bool]:
        token = guard.activate()
        found = []
        for _ in range(3):
            await asyncio.sleep(0)
            found += [current_caller() is guard, await asyncio.to_thread(current_caller) is guard]
            found += [await asyncio.get_running_loop().run_in_executor(None, current_caller) is guard]
        guard.deactivate(token)
        return found

    async def both() -> list[list[bool]]:
        return list(await asyncio.gather(within(one), within(other)))

    assert asyncio.run(both()) == [[True] * 9] * 2


def test_the_default_answers_for_everybody_who_belongs_to_nobody(one: Guard, other: Guard) -> None:
    one.make_default()
    assert current_caller() is one
    token = other.activate()
    assert current_caller() is other
    other.deactivate(token)
    other.make_default()
    assert current_caller() is other
    other.unmake_default()
    assert current_caller() is one
    one.unmake_default()
    assert current_caller() is None


def test_what_an_offline_run_left_behind_stays_offline_unless_a_default_takes_it(other: Guard) -> None:
    guard = Guard()
    guard.start()
    token = guard.activate()
    guard.finish()
    assert current_caller() is guard
    other.make_default()
    assert current_caller() is other
    other.unmake_default()
    guard.deactivate(token)
    assert current_caller() is None


def test_what_is_rewinds_own_belongs_to_nobody(one: Guard) -> None:
    one.make_default()
    with ourselves():
        assert current_caller() is None
        assert in_thread() is None
    assert our_context().run(current_caller) is None
    one.unmake_default()


def test_a_request_belongs_to_whoever_wrote_last(one: Guard, other: Guard) -> None:
    peer = Peer(1, b"tls")
    set_owner(1, one)
    assert owner(peer) is one
    set_owner(b"tls", other)  # what is seen of the TLS is nearer to the writer than the socket
    assert owner(peer) is other
    set_owner(b"tls", None)
    assert owner(peer) is None
    forget(peer)


def test_another_process_is_refused_where_nobody_can_tell_which_offline_run_it_works_for(
    one: Guard, other: Guard
) -> None:
    assert owner(Peer(4)) is REFUSED
    assert REFUSED.over and REFUSED.rules.offline


def test_a_stranger_belongs_to_the_only_run_there_is(one: Guard) -> None:
    assert owner(Peer(2)) is one


def test_a_connection_that_nobody_sees_written_ends_with_its_answer(one: Guard) -> None:
    set_owner(3, one)
    assert is_certain(Peer(3))
    mark_unseen(3)
    assert not is_certain(Peer(3))
    assert is_certain(Peer(3, b"its TLS is seen"))
    forget(Peer(3))
    assert is_certain(Peer(3))


def test_a_connection_keeps_no_run_alive_and_what_an_offline_one_left_stays_refused() -> None:
    guard = Guard()
    gone = ref(guard)
    set_owner(5, guard)
    del guard
    gc.collect()
    assert gone() is None
    assert owner(Peer(5)) is REFUSED
    forget(Peer(5))
    assert owner(Peer(5)) is None


def test_a_pool_of_threads_works_for_whoever_hands_out_the_work(one: Guard) -> None:
    with ThreadPool(1) as before:
        token = one.activate()
        found = [
            before.apply(current_caller),
            *before.map(lambda _: current_caller(), [1]),
            *before.starmap(lambda _a, _b: current_caller(), [(1, 2)]),
            *before.imap(lambda _: current_caller(), [1]),
            *before.imap_unordered(lambda _: current_caller(), [1]),
        ]
        with ThreadPool(1) as within:
            assert within.apply(current_caller) is one
            one.deactivate(token)
            assert within.apply(current_caller) is None
        assert found == [one] * 5
        assert before.apply(current_caller) is None


def test_a_run_may_leave_while_its_thread_is_about_to_join_another(one: Guard) -> None:
    """As where the collector of garbage ends it."""
    left = []

    def leave_meanwhile() -> None:
        with redirect_callers._lock:
            one.finish()
            left.append(True)

    thread = threading.Thread(target=leave_meanwhile, daemon=True)
    thread.start()
    thread.join(10)
    assert left == [True]
