"""`diffuco serve`: a page on which to watch the reverse diffusion solve a graph, and an HTTP API.

A request passes through `app` (the addresses), `service` (which turns a message into a graph and a model) and `queue`
(which solves requests together that wait together). It is answered with one of the `messages`. The page in `static/`
uses the same API as everybody else.
"""
