"""Verdicts on runs, rates, formulations and their closed forms."""
