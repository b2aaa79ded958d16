"""A page on this computer for people who use no shell: from a table to a published answer.

It runs the commands of the packages, shows each of them, and needs the extra ``page``.
"""
