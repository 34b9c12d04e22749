"""Many simulations: what is compared, where the trials run, and what comes of them."""
