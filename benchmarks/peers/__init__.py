"""Comparison with other libraries: each in its own environment, all measured by the same code.

`environments` installs them and records what fails; `worker` runs inside each and measures, through
the library's file in `adapters`; `tasks` says what is measured; `page` writes the report.
`benchmarks/compare.py` runs it all.
"""
