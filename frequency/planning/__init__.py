"""Plans of surveys: candidate protocols, their predicted errors, and errors as measured."""
