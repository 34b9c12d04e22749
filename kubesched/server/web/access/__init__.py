"""Who may ask: TLS, authentication and authorization of the scheduler's port."""
