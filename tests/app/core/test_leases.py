import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.conversations import ConversationStore
from app.core.errors import UserError

HOLDER = """
import sys
from pathlib import Path
from app.core.conversations import ConversationStore
store = ConversationStore(Path(sys.argv[1]))
with store.lease(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def holder(store: ConversationStore, tmp_path: Path):
    """(conversation, another process that holds its lease)."""
    conversation = store.create().id
    path = tmp_path / "data" / "conversations.db"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), conversation],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with process:
        yield conversation, process
        process.kill()


def test_another_process_is_refused_until_the_lease_is_given_back(store: ConversationStore, holder) -> None:
    conversation, process = holder
    assert store.leased_by(conversation) == process.pid
    with pytest.raises(UserError, match="another Pagekeep") as caught, store.lease(conversation):
        pytest.fail("two processes hold one conversation")
    assert str(process.pid) in caught.value.why
    process.stdin.close()
    process.wait(60)
    with store.lease(conversation):
        assert store.leased_by(conversation) == os.getpid()
    assert store.leased_by(conversation) is None


def test_a_crash_frees_the_lease(store: ConversationStore, holder) -> None:
    conversation, process = holder
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    with store.lease(conversation):
        assert store.leased_by(conversation) == os.getpid()


def test_other_conversations_are_free(store: ConversationStore, holder) -> None:
    with store.lease(store.create().id):
        pass
