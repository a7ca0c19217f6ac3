"""A widget knows which pages look at it, from what they say and from how long they are silent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.testing import Scripted
from yiemagent_nb.widgets.audience import LONGEST_SILENCE, MOST_PAGES, Audience
from yiemagent_nb.widgets.host import WidgetHost


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def audience(clock: Clock) -> Audience:
    return Audience(clock)


@pytest.fixture
def host() -> Iterator[WidgetHost]:
    host = Page(Agent(Scripted([]))).host
    yield host
    host.close()


def test_nobody_looks_before_a_page_says_so(audience: Audience) -> None:
    assert not audience


def test_one_page_leaves_and_another_stays(audience: Audience) -> None:
    audience.hear("a")
    audience.hear("b")
    audience.miss("b")
    assert audience
    audience.miss("a")
    assert not audience


def test_a_page_that_is_long_silent_is_gone_and_comes_back_when_it_speaks(audience: Audience, clock: Clock) -> None:
    audience.hear("a")
    clock.now += LONGEST_SILENCE - 1
    assert audience
    clock.now += 1
    assert not audience
    audience.hear("a")
    assert audience


def test_the_page_that_spoke_last_counts(audience: Audience, clock: Clock) -> None:
    audience.hear("a")
    audience.hear("b")
    clock.now += LONGEST_SILENCE - 1
    audience.hear("a")
    clock.now += LONGEST_SILENCE - 1
    assert audience


def test_a_page_with_ever_new_names_takes_no_more_memory(audience: Audience) -> None:
    for number in range(2 * MOST_PAGES):
        audience.hear(str(number))
    for number in range(MOST_PAGES, 2 * MOST_PAGES):
        audience.miss(str(number))
    assert not audience


def test_a_widgets_host_hears_its_pages(host: WidgetHost) -> None:
    host.receive({"type": "hello", "last_seq": 0, "page": "a"})
    host.receive({"type": "heartbeat", "last_seq": 0, "page": "b"})
    host.receive({"type": "bye", "page": "a"})
    assert host.audience
    host.receive({"type": "bye", "page": "b"})
    assert not host.audience
