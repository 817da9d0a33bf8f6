"""Parsing of XML as a stream, with a limit on its size.

A document type declaration is refused, because entities declared there can expand to any size.
"""

from typing import Any
from xml.parsers import expat

from diffuco.foundation.errors import InputError
from diffuco.graphs.formats.source import CHUNK_BYTES, Source

MAX_XML_BYTES = 2**30
"""Largest file, because elements take several times their size in memory while the graph is collected."""


def parse_xml(source: Source, parser: Any) -> None:
    """Feed the whole input to an expat parser."""

    def refuse_doctype(*_: object) -> None:
        raise source.error("a <!DOCTYPE> declaration; remove it, graphs need none", parser.CurrentLineNumber)

    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        for position, chunk in enumerate(source.chunks()):
            if position * CHUNK_BYTES > MAX_XML_BYTES:
                raise source.error(f"more than {MAX_XML_BYTES // 2**30} GiB of XML; write the graph in another format")
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise source.error(
            f"not well-formed XML ({reason}); correct the file or {source.choose_format}", error.lineno
        ) from error
    except (LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise source.error(f"the XML cannot be decoded ({error}); convert the file to UTF-8") from error
