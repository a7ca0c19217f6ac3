"""The branches of a conversation, beside a model of plain lists."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from yiemagent_nb.core.branches import Branch, Branches
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import AssistantMessage, ImageContent, Message, TextContent, UserMessage

PIXEL = ImageContent(
    data="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    mime_type="image/png",
)


class Conversation(RuleBasedStateMachine):
    """Says things, goes back and switches; knows every way that was ever taken as a list of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[Message] = []
        self.branches = Branches(self.history)
        self.said = 0
        # By what stands before, the ways on from there in their order; and which was shown last.
        self.ways: dict[tuple[str, ...], list[str]] = {}
        self.shown: dict[tuple[str, ...], str] = {}
        self.path: tuple[str, ...] = ()

    @rule(count=st.integers(1, 3))
    def say(self, count: int) -> None:
        for _ in range(count):
            self.said += 1
            word = str(self.said)
            self.history.append(UserMessage(word))
            self.ways.setdefault(self.path, []).append(word)
            self.shown[self.path] = word
            self.path = (*self.path, word)

    @rule(data=st.data())
    def go_back_and_say_something_else(self, data: st.DataObject) -> None:
        if self.path:
            index = data.draw(st.integers(0, len(self.path) - 1))
            self.branches.go_back(index)
            self.path = self.path[:index]
            self.say(1)

    @rule(data=st.data())
    def switch(self, data: st.DataObject) -> None:
        if self.path:
            index = data.draw(st.integers(0, len(self.path) - 1))
            before = self.path[:index]
            position = data.draw(st.integers(0, len(self.ways[before]) - 1))
            self.branches.switch(index, position)
            self.path = (*before, self.ways[before][position])
            self.shown[before] = self.path[-1]
            while self.path in self.shown:
                self.path = (*self.path, self.shown[self.path])

    @rule()
    def forget(self) -> None:
        self.history.clear()
        self.branches.clear()
        self.ways, self.shown, self.path = {}, {}, ()

    @invariant()
    def the_history_is_the_way_that_is_shown(self) -> None:
        assert tuple(message.text for message in self.history if isinstance(message, UserMessage)) == self.path
        for index, word in enumerate(self.path):
            ways = self.ways[self.path[:index]]
            assert self.branches.at(index) == Branch(ways.index(word), len(ways))


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_branch_that_is_not_there_is_refused_and_nothing_changes() -> None:
    history: list[Message] = [UserMessage("a"), AssistantMessage(content=[TextContent("b")])]
    branches = Branches(history)
    for index, position in ((0, 1), (0, -1), (2, 0), (-1, 0)):
        with pytest.raises(InvalidParametersError, match=f"No branch {position} begins at message {index}"):
            branches.switch(index, position)
    assert len(history) == 2


def test_a_text_in_place_of_another_keeps_images_and_files() -> None:
    file = TextContent('<file name="a.csv">\n1,2\n</file>')
    history: list[Message] = [UserMessage([TextContent("look"), PIXEL, file])]
    edited = Branches(history).read_edit(0, "look again")
    assert edited.content == (TextContent("look again"), PIXEL, file)


def test_nothing_in_place_of_a_text_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="empty"):
        Branches([UserMessage("a")]).read_edit(0, "  ")


def test_an_answer_is_found_where_it_begins() -> None:
    answer = AssistantMessage(content=[TextContent("b")])
    branches = Branches([UserMessage("a"), answer, UserMessage("c"), answer])
    assert branches.find_answer(None) == 3
    assert branches.find_answer(1) == 1
    for index in (0, 2, 4, -1):
        with pytest.raises(InvalidParametersError):
            branches.find_answer(index)


def test_all_words_are_edited_and_no_file_is() -> None:
    file = TextContent('<file name="a.csv">\n1,2\n</file>')
    assert Branches([UserMessage([file])]).read_edit(0, "Look at it").content == (TextContent("Look at it"), file)
    words = [TextContent("a "), file, TextContent("b")]
    assert Branches([UserMessage(words)]).read_edit(0, "c").content == (TextContent("c"), file)


def test_from_behind_the_last_message_one_gets_back_to_what_stood_there() -> None:
    history: list[Message] = [UserMessage("a"), UserMessage("b")]
    branches = Branches(history)
    branches.go_back(0)
    assert branches.at(0) == Branch(1, 1)
    branches.switch(0, 0)
    assert [message.text for message in history if isinstance(message, UserMessage)] == ["a", "b"]
