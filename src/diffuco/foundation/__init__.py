"""Basics that every other package uses: errors, files, devices, wording and the provenance of results."""
