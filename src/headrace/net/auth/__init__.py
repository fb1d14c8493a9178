"""Who we are and who they are: TLS, SASL mechanisms, tokens, tickets."""
