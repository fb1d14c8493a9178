"""SASL: what is said to prove who the client is. One module for each mechanism, and the exchange that carries them.

Everything here is pure: nonces, tokens and passwords are given. Kerberos is not here, because its steps ask a server
(`net.auth.kerberos`). Read next: `machines.cluster.sasl.exchange`.
"""
