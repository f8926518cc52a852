"""A campaign's folder on disk: what survives an interrupt, a kill -9 or a power loss.

    trials.json        the plan
    journal.jsonl      what happened, one fsynced line each: sessions, finished trials, the end
    provenance.json    where it ran
    transcripts/*.json one file a trial, written whole or not at all; when packed, all in one
                       archive
    SHA256SUMS         the digests of these when a session ended, or it was packed (manifest.py)
    lock               held by the run that writes here (lock.py)

A trial is finished when its transcript is there; everything else can be derived from it.
"""

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Union

from runners.records import archive, lock, typed_json
from runners.records.description_rules import Rule
from runners.records.plan import Plan, plan_from_json, plan_to_json
from runners.records.record import FalloffError, Transcript, is_name

# The status of a trial that did not run because too few nodes were left, and of one that other work
# on the machine disturbed. Neither has a result, and the next session tries them again.
TRIED_AGAIN = ("unavailable", "busy")
# A start this long [s] after the last trial is a session of its own on the same machine, too: what
# else a machine does, its clock and its heat change over hours.
APART_S = 6 * 3600.0
_LATEST = 1e11  # s since the epoch


class Folder:
    """The folder of one campaign: created with its plan, or opened again to continue."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._transcripts = self.path / "transcripts"
        self._journal = self.path / "journal.jsonl"
        self._provenance = self.path / "provenance.json"

    def create_or_check(self, plan: Plan) -> None:
        """Claim the folder for this plan; raises FalloffError if it belongs to another plan."""
        file = self.path / "trials.json"
        if file.exists() and self.plan().digest != plan.digest:
            raise FalloffError(
                f"{self.path} holds trials of another version of campaign {plan.name!r}; nothing "
                "was changed. Choose another folder, or move this one away"
            )
        self._transcripts.mkdir(parents=True, exist_ok=True)
        write_whole(file, plan_to_json(plan))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only run that writes here, and remove what a killed run left half-written; raises
        FalloffError."""
        with lock.writing(self.path):
            for leftover in (*self.path.glob("*.part"), *self._transcripts.glob("*.part")):
                leftover.unlink()
            yield

    def plan(self) -> Plan:
        """The plan in this folder; raises FalloffError if there is none."""
        file = self.path / "trials.json"
        try:
            return plan_from_json(file.read_bytes())
        except FileNotFoundError:
            raise FalloffError(f"{self.path} is not a campaign: it has no trials.json") from None
        except (OSError, ValueError) as error:
            raise FalloffError(
                f"{file} is damaged ({error}); restore it or start afresh with --fresh"
            ) from None

    def finished(self) -> set[str]:
        """The ids of the trials with a transcript."""
        return {file.stem for file in self._transcripts.glob("*.json")}

    def save(self, transcript: Transcript) -> None:
        """Write a transcript; when this returns, it is completely on disk."""
        file = self._transcripts / f"{transcript.trial.id}.json"
        write_whole(file, json.dumps(asdict(transcript)))

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Each trial's id and the text of its transcript as written, from the archive and the
        folder."""
        packed = self.path / archive.NAME
        if packed.exists():
            yield from archive.read(packed)
        for trial_id in sorted(self.finished()):
            file = self._transcripts / f"{trial_id}.json"
            try:
                text = file.read_bytes()
            except OSError as error:
                raise FalloffError(
                    f"{file} cannot be read ({error.strerror}); restore it"
                ) from None
            yield trial_id, text

    def transcripts(self) -> Iterator[Transcript]:
        """All transcripts by id, from the folder or its archive; raises FalloffError if one is
        damaged."""
        for trial_id, text in self.texts():
            yield read_transcript(text, self.place(trial_id))

    def place(self, trial_id: str) -> str:
        """Where a trial's transcript is: its file, or its name in the archive."""
        file = self._transcripts / f"{trial_id}.json"
        return str(file) if file.exists() else f"{trial_id} in {self.path / archive.NAME}"

    def note(self, event: str, **details: Any) -> None:
        """Append a line to the journal; when this returns, it is on disk."""
        line = json.dumps({"event": event, "at": time.time(), **details}).encode() + b"\n"
        with _naming(self._journal), open(self._journal, "ab+") as journal:
            if journal.tell():
                journal.seek(-1, os.SEEK_END)
                # A kill may have cut the last line short; this line must not be joined to it.
                line = line if journal.read(1) == b"\n" else b"\n" + line
            journal.write(line)
            journal.flush()
            os.fsync(journal.fileno())

    def notes(self) -> list[dict[str, Any]]:
        """The complete lines of the journal, in order; `damage` lists the others."""
        return [note for _, note in self._lines() if isinstance(note, dict)]

    def damage(self) -> list[str]:
        """The unreadable parts of journal and provenance, a line each. A last line that a kill cut
        short does not count."""
        lines = self._lines()
        faults = [
            f"line {number} of {self._journal.name} is no note ({note})"
            for number, (line, note) in enumerate(lines, start=1)
            if not isinstance(note, dict) and (number < len(lines) or line.endswith(b"\n"))
        ]
        try:
            self.provenance()
        except FalloffError as error:
            faults.append(str(error))
        return faults

    def set_aside(self) -> list[str]:
        """Move damaged parts of journal and provenance to files beside them, and continue with the
        rest; returns a line for each."""
        if not self.damage():
            return []
        messages, moment, sessions = [], time.strftime("%Y%m%d-%H%M%S"), list[Any]()
        with suppress(FalloffError):
            sessions = self.provenance()["sessions"]
        lines = [line.rstrip(b"\r\n") for line, note in self._lines() if isinstance(note, dict)]
        for file, content in (
            (self._journal, b"".join(line + b"\n" for line in lines)),
            (self._provenance, json.dumps({"sessions": sessions}).encode()),
        ):
            if file.exists() and content != file.read_bytes():
                aside = file.with_name(f"{file.name}.damaged-{moment}")
                write_whole(aside, file.read_bytes())
                write_whole(file, content)
                what = f"{file} was damaged: it is kept as {aside.name}"
                messages.append(f"{what}, and the run goes on from its intact part")
        return messages

    def _lines(self) -> list[tuple[bytes, Union[dict[str, Any], str]]]:
        """Each line of the journal with its parsed note, or with what is wrong with it."""
        return _notes(self._journal.read_bytes()) if self._journal.is_file() else []

    def results(self) -> Counter:
        """The number of results in the journal for each trial, less those whose transcript a later
        run missed.

        More than one means that two runs wrote here at once. A trial that lacked nodes, or was
        disturbed, had no result.
        """
        count: Counter = Counter()
        for note in self.notes():
            is_result = note["event"] == "trial" and note["status"] not in TRIED_AGAIN
            if is_result or note["event"] == "lost":
                count[note["id"]] += 1 if is_result else -1
        return count

    def sessions(self) -> dict[str, int]:
        """The session of the campaign, counted from 1, in which each trial ran; if it ran in
        several, the last.

        A start begins a session if it comes APART_S or more after the last trial before it, after a
        reboot, or on another machine. Otherwise it goes on with the session before. Older journals
        say nothing of machines; then the times decide.
        """
        return {note["id"]: number for number, note in self._numbered() if note["event"] == "trial"}

    def this_session(self) -> tuple[set[str], float]:
        """The trials of the session to which the last start belongs, and the time [s since the
        epoch] from which on a start here begins another one."""
        numbered = self._numbered()
        present = numbered[-1][0] if numbered else 0
        trials = [note for number, note in numbered if note["event"] == "trial"]
        ids = {note["id"] for number, note in numbered if number == present and "id" in note}
        return ids, max((note["at"] + APART_S for note in trials), default=0.0)

    def _numbered(self) -> list[tuple[int, dict[str, Any]]]:
        """Each note with the number of its session; a start without a trial takes no number."""
        numbered, number, present, last = [], 0, 0, -APART_S
        before, here = (None, None), (None, None)
        for note in self.notes():
            if note["event"] == "session":
                here = note.get("hostname"), note.get("boot_id")
                is_elsewhere = any(
                    None not in pair and pair[0] != pair[1] for pair in zip(here, before)
                )
                is_other = is_elsewhere or note["at"] >= last + APART_S
                present = number + is_other
            elif note["event"] == "trial":
                number, last, before = present, note["at"], here
            numbered.append((present, note))
        return numbered

    def end(self) -> dict[str, Any]:
        """How the last session ended: `ended` by a rule or `paused`; empty if it was
        interrupted."""
        end: dict[str, Any] = {}
        for note in self.notes():
            if note["event"] in ("session", "ended", "paused"):
                end = note if note["event"] != "session" else {}
        return end

    def stopped_by(self) -> str:
        """The rule that ended the campaign; `interrupted` if none did."""
        return self.end()["by"] if self.end().get("event") == "ended" else "interrupted"

    def write_provenance(self, provenance: Mapping[str, Any]) -> None:
        """Record where the campaign ran; every session adds its own entry."""
        content = json.dumps({"sessions": [*self.provenance_sessions(), provenance]}, indent=1)
        write_whole(self._provenance, content)

    def provenance_sessions(self) -> list[dict[str, Any]]:
        """The entries of all starts so far; raises FalloffError as `provenance`."""
        return self.provenance()["sessions"] if self._provenance.exists() else []

    def provenance(self) -> dict[str, Any]:
        """Where the campaign ran: `sessions`, a table each. Raises FalloffError if the record is
        lost or damaged."""
        try:
            record = typed_json.parsed(self._provenance.read_bytes())
            for session in typed_json.typed(_Provenance, record).sessions:
                for name in ("host", "testbed", "slurm"):
                    typed_json.typed(_Table, session.get(name, {}), name)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FalloffError(f"{self._provenance} is damaged ({reason}); restore it") from None
        return record


_Table = Mapping[str, Any]


@dataclass(frozen=True)
class _Provenance:
    sessions: tuple[_Table, ...]


_SECONDS = Rule("a number of seconds", (int, float), least=0, below=_LATEST)
_TEXT = Rule("a text", (str,), or_unknown=True)
# The fields of a journal line besides `event` and `at`.
_NOTES: Mapping[str, Mapping[str, Rule]] = {
    "session": {"digest": _TEXT, "testbed": _TEXT},
    "trial": {"id": _TEXT, "status": _TEXT, "seconds": _SECONDS},
    "lost": {"id": _TEXT},
    "paused": {"by": _TEXT},
    "ended": {"by": _TEXT},
}


@lru_cache(maxsize=2)  # several questions are asked of the same journal
def _notes(content: bytes) -> list[tuple[bytes, Union[dict[str, Any], str]]]:
    return [(line, _note(line)) for line in content.splitlines(keepends=True)]


def _note(line: bytes) -> Union[dict[str, Any], str]:
    """The note in a line of the journal, or what is wrong with the line."""
    try:
        note = typed_json.parsed(line)
    except ValueError as error:
        return str(error)
    event = note.get("event") if isinstance(note, dict) else None
    if not isinstance(event, str) or event not in _NOTES:
        return "it has none of the events " + ", ".join(_NOTES)
    for name, rule in {"at": _SECONDS, **_NOTES[event]}.items():
        if not rule.allows(note.get(name)):
            return f"its {name!r} is missing or not {rule.words}"
    return note


def write_whole(file: Path, content: Union[str, bytes]) -> None:
    """Replace a file's content so that a crash leaves the old or the new content, never a mixture.

    Raises OSError that names the file, and leaves no temporary file, if the disk is full.
    """
    with replacing(file) as part, _naming(file), open(part, "wb") as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """The path of a temporary file that replaces `file` when the block ends, and is removed if the
    block fails.

    Writers in one folder take turns, so that two runs can write the same file, and the next one
    overwrites what a killed one left. Where the file system has no locks for folders, as NFS, each
    process has a name of its own.
    """
    folder, part = os.open(file.parent, os.O_RDONLY), file.with_name(file.name + ".part")
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
        except OSError:
            part = file.with_name(f"{file.name}.{os.getpid()}.part")
        try:
            yield part
            os.replace(part, file)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Add the file's name to an OSError of a write, which has none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno:
            raise OSError(error.errno, error.strerror, str(file)) from error
        raise


def read_transcript(text: Union[str, bytes], name: str) -> Transcript:
    """A trial's transcript from its text; raises FalloffError if it is damaged."""
    try:
        transcript = typed_json.typed(Transcript, typed_json.parsed(text))
        if not is_name(transcript.trial.id):
            raise ValueError(f"its trial is called {transcript.trial.id[:40]!r}, which is no name")
        if any(abs(run.start) + abs(run.wall_s) >= _LATEST for run in transcript.executions):
            raise ValueError("an execution's start is no time")
        for key, value in [*transcript.counters.items(), *transcript.trial.point.items()]:
            if not _is_plain(value):
                raise ValueError(f"{key} is neither text, number, nor a list of these")
        return transcript
    except ValueError as error:
        raise FalloffError(
            f"transcript {name} is damaged ({error}); delete it and run the campaign again"
        ) from None


def _is_plain(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return value != value or abs(value) < 2**63
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str)
