"""The page /docs: the API for people, made from its OpenAPI description. It loads nothing from other sites."""

import json
from html import escape
from typing import Any

Schema = dict[str, Any]


def as_page(description: Schema) -> str:
    """All addresses with what they take and give, as HTML.

    >>> page = as_page({"info": {"title": "t", "version": "1"}, "paths": {"/x": {"get": {"description": "Says <x>."}}}})
    >>> "<h2><code>GET /x</code></h2>" in page, "Says &lt;x&gt;." in page
    (True, True)
    """
    found = [
        (method, path, about) for path, methods in description["paths"].items() for method, about in methods.items()
    ]
    found.sort(key=lambda operation: operation[0] != "post")  # first what solves
    operations = [_operation(method, path, about, description) for method, path, about in found]
    title = f"{escape(description['info']['title'])} {escape(description['info']['version'])}: the API"
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/style.css">'
        '<script src="/static/theme.js"></script></head>'
    )
    intro = 'For programs, <a href="/openapi.json">/openapi.json</a> says the same. The <a href="/">page</a> uses it.'
    return f'{head}<body class="reference"><h1>{title}</h1><p>{intro}</p>{"".join(operations)}</body></html>\n'


def _operation(method: str, path: str, about: Schema, description: Schema) -> str:
    parts = [f"<h2><code>{method.upper()} {escape(path)}</code></h2>", f"<p>{escape(about.get('description', ''))}</p>"]
    if body := about.get("requestBody"):
        schema = _resolved(body["content"]["application/json"]["schema"], description)
        parts += ["<h3>Request</h3>", _fields(schema, description), "<h3>Example</h3>", _example(path, schema)]
    for status, response in about.get("responses", {}).items():
        schema = _resolved(response.get("content", {}).get("application/json", {}).get("schema", {}), description)
        parts.append(f"<h3>{escape(status)}: {escape(response.get('description', ''))}</h3>")
        if status == "200":
            parts.append(_fields(schema, description, shows_required=False))
    return "".join(parts)


def _fields(schema: Schema, description: Schema, *, shows_required: bool = True) -> str:
    required = schema.get("required", []) if shows_required else []
    rows = [
        f"<tr><td><code>{escape(name)}</code></td><td>{_kind(field, description)}</td>"
        f"<td>{'required' if name in required else ''}</td><td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _kind(field: Schema, description: Schema) -> str:
    """What a field holds, in words; the choices of a nested object are listed with their own fields."""
    if choices := field.get("oneOf"):
        shown = [_resolved(choice, description) for choice in choices]
        return "one of " + "".join(f"<br>{escape(each['description'])}{_fields(each, description)}" for each in shown)
    if choices := field.get("anyOf"):
        return " or ".join(_kind(choice, description) for choice in choices)
    if "$ref" in field:
        return _fields(_resolved(field, description), description)
    if "const" in field or "enum" in field:
        return escape(", ".join(json.dumps(value) for value in field.get("enum", [field.get("const")])))
    limits = [f"{word} {field[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in field]
    return escape(" ".join([str(field.get("type", "value")), *limits]))


def _example(path: str, schema: Schema) -> str:
    body: Schema = {"graph": {"kind": "edges", "edges": [[0, 1], [1, 2]]}}
    if "problem" in schema["properties"]:
        body["problem"] = "mis"
    return f"<pre>{escape(f'curl localhost:8000{path} --json {chr(39)}{json.dumps(body)}{chr(39)}')}</pre>"


def _resolved(schema: Schema, description: Schema) -> Schema:
    """A schema itself, where only its name was given."""
    if "$ref" not in schema:
        return schema
    found: Schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found
