"""Try thousands of damaged and forged files: each must be read as it is written, or refused.

    python -m tools.fuzz                                       500 inputs of every format
    python -m tools.fuzz --inputs 20000 --format parquet --seed 7
    python -m tools.fuzz --format parquet --seed 7 --only 1234 --keep input    one of them again

Inputs are made from valid files: bits flip, bytes are spliced, tokens and entries of JSON are
replaced, repeated, moved and removed, numbers of a report or of an aggregate are changed; digests
are mostly computed again, so that the checks behind them are reached. An input depends on the seed,
on its format and on its number alone.

A finding is an error other than those that the reader promises, an input that is accepted although
a plain reading of it, written here without the library, says otherwise, more than 5 CPU seconds, or
more than 500 MB: inputs have at most 100 kB. A process that hangs or dies is a finding too, and
another process continues. The exit code is 1 if there are findings. Needs the extra ``storage``,
and a POSIX system.
"""
