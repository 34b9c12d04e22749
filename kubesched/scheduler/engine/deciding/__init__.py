"""Deciding: one attempt for one pod, from PreFilter to the chosen node. Nothing is written here."""
