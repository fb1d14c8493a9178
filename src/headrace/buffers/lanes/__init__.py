"""The ways on which an application's threads send and receive by themselves, on connections that the loop lends them.

Plain twins of what is native in `_buffer.pyx`. Read next: `direct_lane` for records, `fetch_lane` for replies with
records, `tls_pipe` for what both do under TLS.
"""
