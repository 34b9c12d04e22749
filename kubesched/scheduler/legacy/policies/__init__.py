"""Policy files and algorithm providers of old releases, turned into predicates and priorities."""
