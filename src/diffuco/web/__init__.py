"""`diffuco serve`: a page to watch the reverse diffusion solve a graph, and an HTTP API.

A request goes through `app` (what there is at which address), `service` (from a message to a graph and a model),
`batching` (requests that wait together are solved together) and back as an answer of `messages`. The page in `static/`
uses the same API as everybody else.
"""
