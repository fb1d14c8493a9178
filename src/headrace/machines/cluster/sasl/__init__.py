"""SASL: the tokens by which a client proves its identity. One module per mechanism, and the exchange that carries them.

Everything here is pure: nonces, tokens and passwords are given. Kerberos is not here, because its steps ask a server
(`net.auth.kerberos`). Read next: `machines.cluster.sasl.exchange`.
"""
