"""What is being written is held by who writes it: of two writers the last wins whole, and what a dead one left is removed."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from coset.ir.errors import CosetError
from coset.ir.held import held_folder, replacing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed(work: Callable[[], object]) -> None:
    """Do `work` in a process that is killed then."""
    child = os.fork()
    if not child:
        work()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_two_writers_of_one_file_do_not_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with replacing(path) as first:
        first.write(b"first, ")
        with replacing(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
        first.write(b"and last")
    assert path.read_bytes() == b"first, and last" and names(tmp_path) == ["out"]


def test_a_writer_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and names(tmp_path) == ["out"]


def test_what_a_killed_writer_left_is_removed_by_the_next_but_not_that_of_a_live_one(tmp_path: Path) -> None:
    path = tmp_path / "out"

    def half() -> None:
        with replacing(path):
            os.kill(os.getpid(), signal.SIGKILL)

    killed(half)
    left = names(tmp_path)
    assert len(left) == 1
    with replacing(path) as file:
        (own,) = names(tmp_path)
        assert own != left[0]
        with replacing(path):
            assert own in names(tmp_path)
        file.write(b"new")
    assert names(tmp_path) == ["out"]


def test_what_a_killed_job_left_is_removed_by_the_next_but_not_that_of_a_live_one(tmp_path: Path) -> None:
    own, held = held_folder(".coset-", tmp_path)
    killed(lambda: (held_folder(".coset-", tmp_path)[0] / "model").write_bytes(b"half"))
    assert len(names(tmp_path)) == 2
    other, also_held = held_folder(".coset-", tmp_path)
    assert names(tmp_path) == sorted([own.name, other.name])
    os.close(held)
    os.close(also_held)


def test_a_file_that_is_too_large_for_the_disk_is_a_plain_error(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(CosetError, match="cannot write out: File too large"), replacing(path) as file:
            file.write(bytes(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old" and names(tmp_path) == ["out"]


def test_a_folder_that_is_not_there_is_a_plain_error(tmp_path: Path) -> None:
    with pytest.raises(CosetError, match="cannot write out: No such file"), replacing(tmp_path / "none" / "out"):
        pass
