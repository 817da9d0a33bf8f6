"""One input, a file or standard input: it is decompressed as it is read, and every failure is an `InputError`."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self, cast

from diffuco.foundation.errors import InputError

MAX_NODES = 50_000_000
"""A header with more nodes counts as damaged, so that a false number cannot fill the memory."""
MAX_BYTES = 4 * 2**30
"""Largest decompressed input, so that a small file cannot fill the memory."""
FREE_BYTES = 64 * 2**20
MAX_EXPANSION = 100
"""Beyond `FREE_BYTES`, data may be this many times as large as its compressed file; graphs rarely reach 20."""
MAX_LINES = 100_000_000
"""Short lines take more memory as numbers than as text, so their number has a limit of its own."""
MAX_LINE_BYTES = 256 * 2**20
CHUNK_BYTES = 4 * 2**20
COMPRESSIONS = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
}
"""Suffix of each compression, and the bytes that its files begin with."""


class Block(NamedTuple):
    """Some whole lines of a text."""

    first_line: int
    """Number of the first line in the file, from 1."""
    num_lines: int
    text: bytes
    """Ends with a newline."""


class Source:
    """An input that can be read several times; pipes are copied to a temporary file first."""

    max_nodes = MAX_NODES
    """Most nodes that a graph read from this input may have."""
    too_many_nodes = "can be read; correct the number or give a smaller graph"
    """What follows the limit in the message about it."""
    choose_format = "pass --format"
    """Remedy in messages about files that may be in another format."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        is_stdin = str(path) == "-"
        self.shown = "<stdin>" if is_stdin else _one_line(str(path))
        self.name = "stdin" if is_stdin else Path(without_compression(self.path.name)).stem
        self._copy: IO[bytes] | None = None
        if is_stdin:
            self._copy = _temporary_file(self._pieces(sys.stdin.buffer, None))
        elif not self._is_regular_file():
            with self._open_file() as pipe:
                self._copy = _temporary_file(self._pieces(pipe, None))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._copy is not None:
            self._copy.close()

    def error(self, problem: str, line: int | None = None) -> InputError:
        """The exception for a problem with this input; `problem` says what is wrong, then what to do."""
        place = self.shown if line is None else f"{self.shown}:{line}"
        return InputError(f"{place}: {problem}")

    def check_num_nodes(self, count: int, line: int | None = None) -> None:
        """Refuse a graph with too many nodes."""
        if count > self.max_nodes:
            raise self.error(f"{count} nodes; at most {self.max_nodes} {self.too_many_nodes}", line)

    def chunks(self) -> Iterator[bytes]:
        """The decompressed bytes in pieces of a few MiB."""
        with self._open_raw() as raw:
            suffix = self._compression_of(raw)
            limit = MAX_BYTES if suffix is None else self.expansion_limit(raw)
            yield from self._pieces(_decompressed(raw, suffix), suffix, limit)

    def blocks(self) -> Iterator[Block]:
        """The text in blocks of whole lines; zero bytes are refused as a sign of a binary file."""
        line, rest, is_first = 1, b"", True
        for chunk in self._joined_chunks():
            text = rest + (chunk.removeprefix(codecs.BOM_UTF8) if is_first else chunk)
            is_first = False
            if b"\0" in text:
                line += text.count(b"\n", 0, text.index(b"\0"))
                raise self.error(
                    f"a zero byte, so this is not UTF-8 text; check the format or {self.choose_format}", line
                )
            end = text.rfind(b"\n") + 1
            if end:
                num_lines = text.count(b"\n", 0, end)
                yield Block(line, num_lines, text[:end])
                line += num_lines
            if line > MAX_LINES:
                raise self.error(f"more than {MAX_LINES} lines; give a smaller file", line)
            rest = text[end:]
        if line == 1 and not rest:
            raise self.error("the file is empty; give a file with a graph")
        if rest:
            yield Block(line, 1, rest + b"\n")

    def decoded(self, content: bytes, problem: str) -> str:
        """Bytes of this input as text; `problem` is what to say of bytes that are not UTF-8."""
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self.error(problem, content.count(b"\n", 0, error.start) + 1) from None

    def from_json(self, text: str, remedy: str) -> Any:
        """What a text of this input says in JSON; `remedy` is what to do where it is none."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "it is nested too deeply")
            raise self.error(f"this is not JSON ({reason}); {remedy}", getattr(error, "lineno", None)) from None

    def seekable(self) -> IO[bytes]:
        """The decompressed bytes as a file that can be read at any position."""
        raw = self._open_raw()
        if self._compression_of(raw) is None:
            return raw
        raw.close()
        return _temporary_file(self.chunks())

    def expansion_limit(self, compressed: IO[bytes]) -> int:
        """The most bytes that a compressed file may expand to."""
        size = compressed.seek(0, os.SEEK_END)
        compressed.seek(0)
        return min(MAX_BYTES, max(FREE_BYTES, MAX_EXPANSION * size))

    def too_large(self, limit: int) -> InputError:
        """The exception for more bytes than a limit."""
        if limit == MAX_BYTES:
            return self.error(f"more than {MAX_BYTES / 2**30:.3g} GiB of data; give a smaller file")
        found = f"a small file with more than {limit // 2**20} MiB of data"
        return self.error(f"{found}; if you trust it, unpack it, or save it without compression")

    def _joined_chunks(self) -> Iterator[bytes]:
        """Chunks that each contain a line break, so that a long line is not copied again with every chunk."""
        parts: list[bytes] = []
        size = 0
        for chunk in self.chunks():
            parts.append(chunk)
            size += len(chunk)
            if b"\n" in chunk:
                yield b"".join(parts)
                parts, size = [], 0
            elif size > MAX_LINE_BYTES:
                raise self.error(f"a line of more than {MAX_LINE_BYTES // 2**20} MiB; check that this is a text file")
        if parts:
            yield b"".join(parts)

    def _compression_of(self, raw: IO[bytes]) -> str | None:
        """Decided by the first bytes: pipes have no suffix, and downloads are often unpacked under the old name."""
        start = self._next_chunk(raw, None, 10)
        raw.seek(0)
        return next((suffix for suffix, magic in COMPRESSIONS.items() if magic.match(start)), None)

    def _pieces(self, stream: IO[bytes], suffix: str | None, limit: int | None = None) -> Iterator[bytes]:
        limit = MAX_BYTES if limit is None else limit
        size = 0
        while chunk := self._next_chunk(stream, suffix):
            size += len(chunk)
            if size > limit:
                raise self.too_large(limit)
            yield chunk

    def _next_chunk(self, stream: IO[bytes], suffix: str | None, size: int = CHUNK_BYTES) -> bytes:
        try:
            return stream.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError) as error:
            if suffix is None:
                raise self._os_error(error) from error
            raise self.error(
                f"the {suffix} data is damaged or cut off ({_one_line(str(error))}); get the file again"
            ) from error

    def _is_regular_file(self) -> bool:
        try:
            return self.path.is_file() or not self.path.exists() or self.path.is_dir()
        except (OSError, ValueError) as error:
            raise self._os_error(error) from error

    def _open_raw(self) -> IO[bytes]:
        if self._copy is None:
            return self._open_file()
        self._copy.seek(0)
        return os.fdopen(os.dup(self._copy.fileno()), "rb")

    def _open_file(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except (OSError, ValueError) as error:
            raise self._os_error(error) from error

    def _os_error(self, error: BaseException) -> InputError:
        if isinstance(error, FileNotFoundError):
            return self.error("there is no such file; check the path")
        if isinstance(error, IsADirectoryError):
            return self.error("this is a folder; give one of the files in it")
        if isinstance(error, PermissionError):
            return self.error("no permission to read this file; change its mode or copy it")
        return self.error(f"cannot be read ({_one_line(str(error))}); check the path and the disk")


class TextSource(Source):
    """A text in memory with the name of a file; no file is opened, and nothing is decompressed."""

    too_many_nodes = "are allowed here; give a smaller graph, or run `diffuco solve` on your own machine"
    choose_format = "choose the format"

    def __init__(self, text: str, name: str, *, max_nodes: int = MAX_NODES) -> None:
        self.path = Path(name)
        self.shown = _one_line(name)
        self.name = Path(without_compression(self.path.name)).stem
        self.max_nodes = max_nodes
        self._copy = None
        self._content = text.encode()

    def _open_raw(self) -> IO[bytes]:
        return io.BytesIO(self._content)

    def _compression_of(self, raw: IO[bytes]) -> None:
        return None


def without_compression(name: str) -> str:
    """The file name without a suffix such as `.gz`.

    >>> without_compression("C125.9.clq.gz")
    'C125.9.clq'
    """
    for suffix in COMPRESSIONS:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def quoted(text: str | bytes) -> str:
    """A piece of the input, short and on one line, for an error message."""
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return repr(shown if len(shown) <= 40 else shown[:37] + "...")


def _one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _decompressed(raw: IO[bytes], suffix: str | None) -> IO[bytes]:
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if suffix == ".bz2":
        return cast("IO[bytes]", bz2.BZ2File(raw))
    if suffix == ".xz":
        return cast("IO[bytes]", lzma.LZMAFile(raw))
    return raw


def _temporary_file(chunks: Iterator[bytes]) -> IO[bytes]:
    """A copy that can be read again; the caller closes it."""
    with ExitStack() as on_error:
        copy = cast("IO[bytes]", on_error.enter_context(tempfile.TemporaryFile()))
        for chunk in chunks:
            copy.write(chunk)
        copy.flush()
        copy.seek(0)
        on_error.pop_all()
    return copy
