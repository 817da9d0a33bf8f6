"""Solutions of many graphs in one file, as JSON lines or Parquet; a killed run can be continued.

Records are appended as they come and are safe on disk before `append` returns. If a run is killed in the middle of a
line, the next run drops that line; a file that holds anything else is left as it is. Parquet files cannot be appended
to, so their records are first kept as JSON lines in FILE.unfinished.jsonl, until `finish` writes all of them.
"""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.foundation.files import finite, lock, naming, replacing

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".jsonl", ".parquet")
ROWS_PER_GROUP = 1000
"""Rows of a Parquet file that are held in memory at once."""


class SolutionLog:
    """The records of the graphs solved so far, by file name. Only one process may write at a time.

    >>> import tempfile
    >>> record = {"file": "a.clq", "problem": "mis", "seed": 0, "objective": 2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         with SolutionLog(Path(folder) / "found.jsonl", problem="mis", seed=0) as log:
    ...             print(sorted(log.files))
    ...             log.append([record] if "a.clq" not in log.files else [])
    []
    ['a.clq']
    """

    def __init__(self, path: Path, *, problem: str, seed: int) -> None:
        self.path, self.problem, self.seed = path, problem, seed
        self.files: set[str] = set()
        """Names of the graphs that have a record."""
        self.is_parquet = path.suffix.lower() == ".parquet"
        self.lines_path = path.with_name(f"{path.name}.unfinished.jsonl") if self.is_parquet else path
        if self.is_parquet:
            _require_pyarrow(path)
        self._lock = lock(self.lines_path)
        self._out = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()
        self._lock.release()

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        """Add records of graphs that have none yet."""
        names = [record["file"] for record in records]
        assert self.files.isdisjoint(names)
        with naming(self.lines_path):
            self._out.write("".join(f"{json.dumps(finite(record), allow_nan=False)}\n" for record in records).encode())
            self._out.flush()
            os.fsync(self._out.fileno())
        self.files.update(names)

    def records(self) -> Iterator[dict[str, Any]]:
        """All records, one at a time, in the order in which they were added."""
        seen: set[str] = set()
        for record in chain(self._finished(), self._unfinished()):
            # A run that was killed after writing the Parquet file but before removing the lines leaves both.
            if record["file"] not in seen:
                seen.add(record["file"])
                yield record

    def finish(self) -> None:
        """Write the Parquet file of all records; JSON lines are complete as they are."""
        if not self.is_parquet:
            return
        import pyarrow as pa
        from pyarrow import parquet

        schema = _schema()
        with replacing(self.path) as out, parquet.ParquetWriter(out, schema) as writer:
            rows = map(_as_row, self.records())
            while group := list(islice(rows, ROWS_PER_GROUP)):
                writer.write_table(pa.Table.from_pylist(group, schema))
        self.lines_path.unlink()

    def _open(self) -> BinaryIO:
        """Open the file of lines and check all records that are already there; only then mend the end of the file."""
        try:
            out = self.lines_path.open("a+b")
        except OSError as error:
            self._lock.release()
            raise InputError(
                f"{self.lines_path}: cannot write this file ({error.strerror}); choose another path"
            ) from error
        try:
            for record in self.records():
                self._check(record)
                self.files.add(record["file"])
            _mend_last_line(out)
        except InputError:
            out.close()
            self._lock.release()
            raise
        return out

    def _check(self, record: dict[str, Any]) -> None:
        if (record["problem"], record["seed"]) != (self.problem, self.seed):
            there = f"solutions of {record['problem']} with seed {record['seed']}"
            raise InputError(f"{self.path}: the file holds {there}; choose another path, or remove it")

    def _finished(self) -> Iterator[dict[str, Any]]:
        if not (self.is_parquet and self.path.exists()):
            return
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with self.path.open("rb") as stream, parquet.ParquetFile(stream) as file:
                if not file.schema_arrow.equals(_schema()):
                    raise InputError(
                        f"{self.path}: this is not a file of `diffuco solve`; choose another path, or remove it"
                    )
                for rows in file.iter_batches(ROWS_PER_GROUP):
                    yield from rows.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.path}: this is not a Parquet file; choose another path, or remove it") from error

    def _unfinished(self) -> Iterator[dict[str, Any]]:
        with self.lines_path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                record = _parsed(line)
                if record is None and self._is_torn(line):
                    return
                if not _is_record(record):
                    what = "not a record of `diffuco solve`"
                    raise InputError(f"{self.lines_path}:{number}: {what}; choose another path, or remove the line")
                yield record

    def _is_torn(self, line: bytes) -> bool:
        """Whether this is how a record of ours begins, without its end."""
        begin = json.dumps({"problem": self.problem, "file": ""}).removesuffix('"}').encode()
        return not line.endswith(b"\n") and line[: len(begin)] == begin[: len(line)]


def _parsed(line: bytes) -> Any:
    """The value of a line of JSON; None if it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("file"), str) and {"problem", "seed"} <= value.keys()


def _mend_last_line(out: BinaryIO) -> None:
    """End the last line if it is a record, else cut the file before it."""
    start = end = out.seek(0, os.SEEK_END)
    while start > 0:
        size = min(start, 2**16)
        out.seek(start - size)
        if (found := out.read(size).rfind(b"\n")) >= 0:
            start = start - size + found + 1
            break
        start -= size
    if start == end:
        return
    out.seek(start)
    if _parsed(out.read()) is None:
        out.truncate(start)
    else:
        out.write(b"\n")


def _require_pyarrow(path: Path) -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        remedy = f"{install_hint('parquet')}, or choose a path that ends in .jsonl"
        raise InputError(f"{path}: Parquet files need pyarrow; {remedy}") from error


def _as_row(record: dict[str, Any]) -> dict[str, Any]:
    """The record with all labels as text, because a column has one type."""
    return record | {"solution": [str(label) for label in record["solution"]]}


def _schema() -> "pyarrow.Schema":
    """The columns: the fields of `Solution.to_dict`."""
    import pyarrow as pa

    seconds = pa.struct([(stage, pa.float64()) for stage in ("load", "sample", "decode", "refine")])
    return pa.schema(
        [
            *[("problem", pa.string()), ("file", pa.string()), ("nodes", pa.int64()), ("edges", pa.int64())],
            *[("objective", pa.float64()), ("feasible", pa.bool_()), ("violations", pa.int64())],
            *[
                ("optimal", pa.bool_()),
                ("bound", pa.float64()),
                ("gap", pa.float64()),
                ("solution", pa.list_(pa.string())),
            ],
            *[("energies", pa.list_(pa.float64())), ("objectives", pa.list_(pa.float64())), ("sweeps", pa.int64())],
            *[("seconds", seconds), ("found_by", pa.string()), ("reason", pa.string()), ("seed", pa.int64())],
        ]
    )
