"""Answers cached per equivalence class of pods: `cache` finds them, `plan` says which plugins may be cached."""
