"""One count mechanism: its table, files, explanation, errors, unbiased estimates and devices."""
