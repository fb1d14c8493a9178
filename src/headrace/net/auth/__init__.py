"""Authentication: TLS, SASL mechanisms, tokens, tickets."""
