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
        "Defaced facades and effaced decades are words.",
    ],
)
def test_what_holds_is_taken(text: str) -> None:
    check_steady(text)
