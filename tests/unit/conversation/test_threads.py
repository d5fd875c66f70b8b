"""Conversations are recognised from what is asked."""

from rewind.conversation.threads import ThreadPlace, Threads
from rewind.model.ids import MatchKey
from rewind.model.message import Message, Role, Text, Thinking
from unit.conversation.saying import asking, assistant, places, result, saying, use, user

WHO = user("Who are you?")
I_AM = assistant("I am the one who answers the questions of this house.")


def test_a_call_that_begins_with_an_earlier_call_and_its_answer_goes_on_from_it() -> None:
    first = asking(WHO)
    second = asking(WHO, I_AM, user("Why?"))
    third = asking(WHO, I_AM, user("Why?"), assistant("Because."), user("And now?"))
    found = places(
        (first, saying("I am the one who answers the questions of this house.")),
        (second, saying("Because.")),
        (third, saying("Now we rest.")),
    )
    assert found == [ThreadPlace(1), ThreadPlace(1, 1), ThreadPlace(1, 2)]


def test_two_conversations_that_are_mixed_on_the_wire_stay_apart() -> None:
    other = user("What is the weather?")
    found = places(
        (asking(WHO), saying("A house.")),
        (asking(other, system="Tell the weather."), saying("Rain.")),
        (asking(WHO, assistant("A house."), user("Whose?")), saying("Mine.")),
        (asking(other, assistant("Rain."), user("Still?"), system="Tell the weather."), saying("Yes.")),
    )
    assert found == [ThreadPlace(1), ThreadPlace(2), ThreadPlace(1, 1), ThreadPlace(2, 2)]


def test_the_same_beginning_with_two_answers_goes_on_from_the_answer_that_is_quoted() -> None:
    found = places(
        (asking(WHO), saying("One.")),
        (asking(WHO, system="Be strict."), saying("Two.")),
        (asking(WHO, assistant("One."), user("Go on.")), None),
        (asking(WHO, assistant("Two."), user("Go on."), system="Be strict."), None),
    )
    assert [place.parent for place in found] == [None, None, 1, 2]


def test_thinking_that_is_left_out_and_spaces_that_are_trimmed_do_not_part_a_conversation() -> None:
    answered = saying(Thinking("hm"), "  A house.\n")
    found = places((asking(WHO), answered), (asking(WHO, assistant("A house."), user("Whose?")), None))
    assert found == [ThreadPlace(1), ThreadPlace(1, 1)]


def test_an_answer_that_is_brought_back_in_several_messages_is_still_that_answer() -> None:
    call = use("t1", city="Oslo")
    found = places(
        (asking(WHO), saying("I look.", call)),
        (asking(WHO, assistant("I look."), assistant(call), result("t1", "cold")), None),
    )
    assert found[1] == ThreadPlace(1, 1)


def test_the_id_of_an_earlier_answer_is_enough() -> None:
    found = places(
        (asking(WHO), saying("A house.", id="resp_1")), (asking(user("Whose?"), system="", continues="resp_1"), None)
    )
    assert found[1] == ThreadPlace(1, 1)


def test_a_system_prompt_that_changes_on_the_way_does_not_begin_a_conversation() -> None:
    found = places(
        (asking(WHO, system="It is 09:13."), saying("A house.")),
        (asking(WHO, assistant("A house."), user("Whose?"), system="It is 09:14."), None),
    )
    assert found[1] == ThreadPlace(1, 1)


def test_the_same_question_under_another_system_prompt_is_another_conversation() -> None:
    found = places(
        (asking(WHO, system="Be kind."), saying("A house.")), (asking(WHO, user("Well?"), system="Be strict."), None)
    )
    assert found == [ThreadPlace(1), ThreadPlace(2)]


def test_a_history_that_lost_its_beginning_is_known_by_the_tool_result_it_brings() -> None:
    found = places(
        (asking(WHO), saying(use("toolu_9"))),
        (asking(user("Summary of before."), assistant(use("toolu_9")), result("toolu_9", "x")), None),
    )
    assert found[1] == ThreadPlace(1, 1)


def test_a_history_that_lost_its_beginning_is_known_by_the_answer_it_quotes() -> None:
    found = places(
        (asking(WHO), saying("I am the one who answers the questions of this house.")),
        (asking(user("Summary."), I_AM, user("Go on."), system="Other."), None),
    )
    assert found[1] == ThreadPlace(1, 1)


def test_a_short_answer_that_anybody_gives_ties_nothing_together() -> None:
    found = places(
        (asking(WHO), saying("OK")),
        (asking(user("Something else."), assistant("OK"), user("Fine."), system="Other."), None),
    )
    assert found == [ThreadPlace(1), ThreadPlace(2)]


def test_a_compacted_history_goes_on_after_the_last_message_it_kept() -> None:
    long = [user("a"), assistant("b"), user("c"), assistant("d"), user("the last question")]
    compacted = asking(user("Summary of a to d."), user("the last question"), assistant("x"), user("more"))
    found = places((asking(*long), saying("y")), (compacted, None))
    assert found[1] == ThreadPlace(1, 1)


def test_examples_that_many_calls_share_do_not_make_them_one_conversation() -> None:
    examples = [user("2+2"), assistant("4"), user("3+3"), assistant("6")]
    found = places(
        (asking(*examples, user("5+5")), saying("10")),
        (asking(*examples, user("6+6")), saying("12")),
        (asking(*examples, user("7+7")), saying("14")),
    )
    assert [place.thread for place in found] == [1, 2, 3]


def test_a_call_that_is_repeated_stands_beside_the_first() -> None:
    first, again = asking(WHO), asking(WHO)
    assert places((first, None), (again, saying("Here."))) == [ThreadPlace(1), ThreadPlace(1)]
    after = asking(WHO, I_AM, user("Why?"))
    found = places((asking(WHO), saying(I_AM.text)), (after, None), (after, None))
    assert found[1:] == [ThreadPlace(1, 1), ThreadPlace(1, 1)]


def test_a_sub_agent_is_found_under_the_step_that_started_it() -> None:
    task = "Find out whether account 4711 is active."
    main = asking(user("Refund me."), system="You plan.")
    sub = asking(user(f"Your task: {task}"), system="You research.")
    found = places(
        (main, saying(use("t1", "delegate", task=task))),
        (sub, saying("It is active.")),
        (
            asking(
                user("Refund me."),
                assistant(use("t1", "delegate", task=task)),
                result("t1", "It is active."),
                system="You plan.",
            ),
            saying("Done."),
        ),
        (asking(user(f"Once more: {task}"), system="You research."), None),
    )
    assert found[:3] == [ThreadPlace(1), ThreadPlace(2, started_by=1), ThreadPlace(1, 1)]
    assert found[3] == ThreadPlace(3), "by then the tool had answered, so it started nothing"


def test_the_next_document_of_a_batch_is_not_started_by_the_one_before() -> None:
    found = places(
        (
            asking(user("Read: Acme Corporation of Springfield sells anvils.")),
            saying(use("a", name="Acme Corporation of Springfield")),
        ),
        (
            asking(user("Acme Corporation of Springfield also sells rockets.")),
            saying(use("b", name="Acme Corporation of Springfield")),
        ),
    )
    assert found == [ThreadPlace(1), ThreadPlace(2)]


def test_of_two_open_tool_calls_the_one_that_carries_the_task_started_the_sub_agent() -> None:
    first, second = "Find out whether account 4711 is active.", "Write a poem about anvils and rockets."
    found = places(
        (asking(user("a"), system="A"), saying(use("t1", agent="general-purpose-helper-one", task=first))),
        (asking(user("b"), system="B"), saying(use("t2", agent="general-purpose-helper-one", task=second))),
        (asking(user(f"{first} (general-purpose-helper-one)"), system="C"), None),
    )
    assert found[2] == ThreadPlace(3, started_by=1)


def test_agents_that_hand_one_history_around_share_a_conversation() -> None:
    plan, work = assistant("I send this to the researcher."), assistant("The account is active.")
    found = places(
        (asking(WHO, system="Supervise."), saying("I send this to the researcher.")),
        (asking(WHO, plan, system="Research."), saying("The account is active.")),
        (asking(WHO, plan, work, system="Supervise."), None),
    )
    assert found == [ThreadPlace(1), ThreadPlace(1, 1), ThreadPlace(1, 1)], "the supervisor goes on from its own call"


def test_a_history_that_the_provider_keeps_is_a_conversation() -> None:
    found = places(
        (asking(WHO, history="conv_1"), saying("A house.")),
        (asking(user("Whose?"), history="conv_1"), saying("Mine.")),
        (asking(user("Whose?"), history="conv_2"), None),
    )
    assert found == [ThreadPlace(1), ThreadPlace(1, 1), ThreadPlace(2)]


def test_a_window_that_slides_under_a_prompt_that_changes_is_one_conversation() -> None:
    turns = [user("a"), assistant("b"), user("c"), assistant("d"), user("e"), assistant("f"), user("g")]
    found = places(
        (asking(*turns[:3], system="It is 1."), saying("d")),
        (asking(*turns[1:5], system="It is 2."), saying("f")),
        (asking(*turns[3:7], system="It is 3."), None),
    )
    assert [place.thread for place in found] == [1, 1, 1]


def test_ids_that_are_used_again_for_another_call_tie_nothing_together() -> None:
    found = places(
        (asking(user("Oslo?"), system="A"), saying(use("call_0", city="Oslo"))),
        (asking(user("Rome?"), assistant(use("call_0", city="Rome")), result("call_0", "warm"), system="B"), None),
    )
    assert found == [ThreadPlace(1), ThreadPlace(2)]


def test_a_recording_does_not_look_for_what_started_a_conversation() -> None:
    task = "Find out whether account 4711 is active."
    threads = Threads(with_starters=False)
    threads.call(1, MatchKey("rw1:a"), asking(user("a"), system="A"))
    threads.answer(1, saying(use("t1", task=task)))
    assert threads.call(2, MatchKey("rw1:b"), asking(user(task), system="B")) == ThreadPlace(2)


def test_an_answer_to_a_call_that_is_not_known_changes_nothing() -> None:
    threads = Threads()
    threads.answer(9, saying("?", id="resp"))
    assert threads.call(1, MatchKey("rw1:a"), asking(WHO, continues="resp")) == ThreadPlace(1)


def test_calls_without_any_message_are_placed_too() -> None:
    nothing, more = asking(system=""), asking(system="", model="m")
    assert places((nothing, None), (more, None), (nothing, None)) == [ThreadPlace(1), ThreadPlace(2), ThreadPlace(1)]


def test_names_of_speakers_and_roles_count() -> None:
    found = places(
        (asking(WHO), saying("A house.")), (asking(Message(Role.ASSISTANT, (Text("Who are you?"),)), user("x")), None)
    )
    assert [place.thread for place in found] == [1, 2]


def test_a_long_recording_remembers_its_last_calls_and_no_more() -> None:
    threads = Threads(with_starters=False, most=10)
    for number in range(1, 201):
        threads.call(number, MatchKey(f"rw1:{number}"), asking(user(f"question {number}")))
        threads.answer(number, saying(f"an answer that is long enough to tell, number {number}", use(f"t{number}")))
        remembered = [len(getattr(threads, name)) for name in Threads.__slots__ if name.startswith("_by_")]
        assert len(threads._calls) <= 20 and max(remembered) <= 4 * 21
    going_on = asking(
        user("question 198"), assistant("an answer that is long enough to tell, number 198"), user("and then?")
    )
    assert threads.call(201, MatchKey("rw1:201"), going_on).parent == 198
    assert threads.call(202, MatchKey("rw1:202"), asking(user("question 1"))).parent is None
