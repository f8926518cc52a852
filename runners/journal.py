"""A campaign's folder on disk: what survives an interrupt, a kill -9 or a power loss.

    trials.json        the plan
    journal.jsonl      what happened, one fsynced line each: sessions, finished trials, the end
    provenance.json    where it ran
    transcripts/*.json one file a trial, written whole or not at all; when packed, all in one archive
    SHA256SUMS         the digests of these when a session ended, or when it was packed (manifest.py)
    lock               held by the run that writes here (lock.py)

A trial is finished when its transcript is there; everything else can be derived from it.
"""

import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Set, Tuple, Union

from runners import archive, lock
from runners.plan import Plan, plan_from_json, plan_to_json
from runners.record import FalloffError, Transcript, transcript_from_json

# The status of a trial for which too few nodes were left: nothing was run.
UNAVAILABLE = "unavailable"


class Folder:
    """The folder of one campaign; created with its plan, or opened again to be continued."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._transcripts = self.path / "transcripts"
        self._journal = self.path / "journal.jsonl"

    def create_or_check(self, plan: Plan) -> None:
        """Take the folder for this plan; raises FalloffError if it belongs to another one."""
        file = self.path / "trials.json"
        if file.exists() and self.plan().digest != plan.digest:
            raise FalloffError(
                f"{self.path} holds trials of another version of campaign {plan.name!r}; nothing was "
                "changed. Choose another folder, or move this one away"
            )
        self._transcripts.mkdir(parents=True, exist_ok=True)
        write_whole(file, plan_to_json(plan))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only run that writes here, and clear what a killed one left half-written; raises FalloffError."""
        with lock.writing(self.path):
            for leftover in (*self.path.glob("*.part"), *self._transcripts.glob("*.part")):
                leftover.unlink()
            yield

    def plan(self) -> Plan:
        """The plan that this folder holds; raises FalloffError when it holds none."""
        file = self.path / "trials.json"
        try:
            return plan_from_json(file.read_text())
        except FileNotFoundError:
            raise FalloffError(f"{self.path} is not a campaign: it has no trials.json") from None
        except (ValueError, KeyError, TypeError) as error:
            remedy = "restore it or start afresh with --fresh"
            raise FalloffError(f"{file} is damaged ({error}); {remedy}") from None

    def finished(self) -> Set[str]:
        """The ids of the trials whose transcripts are there."""
        return {file.stem for file in self._transcripts.glob("*.json")}

    def save(self, transcript: Transcript) -> None:
        """Write a transcript so that it is on disk, whole, when this returns."""
        file = self._transcripts / f"{transcript.trial.id}.json"
        write_whole(file, json.dumps(asdict(transcript)))

    def texts(self) -> Iterator[Tuple[str, bytes]]:
        """Each trial's id and its transcript as it was written, from the archive and the folder."""
        packed = self.path / archive.NAME
        if packed.exists():
            yield from archive.read(packed)
        for trial_id in sorted(self.finished()):
            yield trial_id, (self._transcripts / f"{trial_id}.json").read_bytes()

    def transcripts(self) -> Iterator[Transcript]:
        """All transcripts by id, from the folder or its archive; raises FalloffError when one is damaged."""
        for trial_id, text in self.texts():
            yield read_transcript(text, trial_id)

    def note(self, event: str, **details: Any) -> None:
        """Append a line to the journal; it is on disk when this returns."""
        line = json.dumps({"event": event, "at": time.time(), **details}).encode() + b"\n"
        with _naming(self._journal), open(self._journal, "ab+") as journal:
            if journal.tell():
                journal.seek(-1, os.SEEK_END)
                # A kill may have cut the last line short; it must not swallow this one.
                line = line if journal.read(1) == b"\n" else b"\n" + line
            journal.write(line)
            journal.flush()
            os.fsync(journal.fileno())

    def notes(self) -> List[Dict[str, Any]]:
        """The journal's lines that are whole, in order."""
        found = []
        text = self._journal.read_text(encoding="utf-8") if self._journal.exists() else ""
        for line in text.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                pass  # cut short by a kill
        return found

    def end(self) -> Dict[str, Any]:
        """How the last session ended: `ended` by a rule or `paused`; empty when it was interrupted."""
        last = [one for one in self.notes() if one["event"] in ("session", "ended", "paused")][-1:]
        return last[0] if last and last[0]["event"] != "session" else {}

    def stopped_by(self) -> str:
        """Which rule ended the campaign; `interrupted` when none did."""
        return self.end()["by"] if self.end().get("event") == "ended" else "interrupted"

    def write_provenance(self, provenance: Mapping[str, Any]) -> None:
        """Keep where the campaign ran; every session adds its own."""
        file = self.path / "provenance.json"
        sessions = json.loads(file.read_text())["sessions"] if file.exists() else []
        write_whole(file, json.dumps({"sessions": [*sessions, provenance]}, indent=1))


def write_whole(file: Path, content: Union[str, bytes]) -> None:
    """Replace a file's content so that a crash leaves the old or the new, never a mixture.

    Raises OSError that names the file, and leaves nothing beside it, when the disk is full.
    """
    part = file.with_name(file.name + ".part")
    try:
        with _naming(file), open(part, "wb") as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, file)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Give an OSError of a write, which has no name, that of the file."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno:
            raise OSError(error.errno, error.strerror, str(file)) from error
        raise


def read_transcript(text: Union[str, bytes], name: str) -> Transcript:
    """A trial's transcript from its text; raises FalloffError when it is damaged."""
    try:
        return transcript_from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        remedy = "delete it and run the campaign again"
        raise FalloffError(f"transcript {name} is damaged ({error}); {remedy}") from None
