import pytest

from app.core.errors import UserError
from app.core.steady import check_steady


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Answer in German. Today is 30 November 2026.", "Today is 30 November 2026"),
        ("Current date and time: Monday, 2026-11-30", "Current date and time"),
        ("The current time is 5 past 10.", "current time is"),
        ("Written at 2026-11-30T05:29:02Z.", "2026-11-30T05:29:02Z"),
        ("It is 05:29:02 here.", "05:29:02"),
        ("Date: {{ now }}", "{{ now }}"),
        ("Date: {current_date}", "{current_date}"),
        ("Started on $(date +%s)", "$(date +%s)"),
        ("Use {{ strftime_now('%d %b') }}", "strftime_now"),
        ("Asked at 1764480542.", "1764480542"),
        ("It is 14:05 now.", "It is 14:05"),
        ("Remember: it's 2:05 pm in Bonn.", "it's 2:05 pm"),
        ("Now: 14:05. Answer briefly.", "Now: 14:05"),
        ("Right now it is 9 am.", "it is 9 am"),
        ("Es ist jetzt 14:05 Uhr.", "Es ist jetzt 14:05"),
        ("As of now (2026-11-30) nothing has changed.", "now (2026-11-30"),
    ],
)
def test_clocks_are_refused(text: str, found: str) -> None:
    with pytest.raises(UserError, match="a clock") as caught:
        check_steady(text)
    assert found in caught.value.why


@pytest.mark.parametrize(
    "text", ["Session 3f2504e0-4f89-11d3-9a0c-0305e82c3301.", "request=9f86d081884c7d659a2feaa0c55ad015", "id {uuid}"]
)
def test_random_ids_are_refused(text: str) -> None:
    with pytest.raises(UserError):
        check_steady(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Answer in one sentence, and say which page.",
        "It is about the contract of 2024-01-05 and the meeting at 10:30.",
        "Amounts over 1,500,000,000 euros count, 1500 do not; call 0123456789.",
        "Say when a date or time is not given. Use {braces} and <tags> as they are.",
        "Explain the current date format of chapter 3.",
        "We open at 14:05 and close at 18:00; it is open from 9:30 to 17:00.",
        "The train of 14:05 is late. It is a story of 1984, and now for chapter 3.",
        "Cite ISBN 1566199094 and ISBN-13: 978-1-56619-909-4.",
        "Defaced facades and effaced decades are words.",
    ],
)
def test_what_holds_is_taken(text: str) -> None:
    check_steady(text)
