"""The properties that all clients have: connections, TLS, SASL, metadata, callbacks.

Read next: `headrace.config.rows_producer`, `headrace.config.rows_consumer`.
"""

from __future__ import annotations

from headrace.config.property import CONSUMER, INT32, PRODUCER, SHARE, Property
from headrace.config.security_properties import GRANTS, JWT_BEARER, MECHANISMS

__all__ = ["COMMON_ROWS"]

_CS = (CONSUMER, SHARE)
_PCS = (PRODUCER, CONSUMER, SHARE)
_OF_OAUTH = "org.apache.kafka.common.security.oauthbearer."

COMMON_ROWS = (
    # Connecting
    Property("bootstrap.servers", "list", (), "Brokers to make the first contact with, as host:port, separated by "
             "commas. Without a port 9092 is meant; a protocol in front (`SASL_SSL://host:port`) must be that of "
             "security.protocol.", aliases=("metadata.broker.list",)),
    Property("client.id", "str", "headrace", "Name of this client in the brokers' logs, quotas and metrics."),
    Property("client.rack", "str", "", "Rack of this client; consumers may then read from the nearest replica. For "
             "producers see partitioner.rack.aware.",
             kip="KIP-392"),
    Property("security.protocol", "enum", "plaintext", "How to talk to brokers: with TLS (ssl), with authentication "
             "by SASL, or both.", choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")),
    # TLS
    Property("ssl.ca.location", "str", "", "File of CA certificates in PEM or PKCS#12, or directory of them as "
             "OpenSSL names them, that the brokers' certificates must chain to; the system's own when empty or "
             "`probe`. Who is given is trusted, and nobody else.", aliases=("ssl.truststore.location",)),
    Property("ssl.ca.pem", "str", "", "CA certificates as PEM text, instead of a file.",
             aliases=("ssl.truststore.certificates",)),
    Property("ssl.truststore.password", "secret", "", "Password of ssl.ca.location, if that is a PKCS#12 file."),
    Property("ssl.crl.location", "str", "", "File of certificate revocation lists in PEM; brokers' certificates are "
             "then checked against them."),
    Property("ssl.certificate.location", "str", "", "File of this client's certificate chain in PEM, for mutual TLS."),
    Property("ssl.certificate.pem", "str", "", "This client's certificate chain as PEM text, instead of a file.",
             aliases=("ssl.keystore.certificate.chain",)),
    Property("ssl.key.location", "str", "", "File of this client's private key in PEM."),
    Property("ssl.key.pem", "secret", "", "This client's private key as PEM text, instead of a file.",
             aliases=("ssl.keystore.key",)),
    Property("ssl.key.password", "secret", "", "Password of the private key."),
    Property("ssl.keystore.location", "str", "", "File with both this client's certificate chain and key, in PKCS#12 "
             "(needs headrace[tls]) or PEM, instead of the four above."),
    Property("ssl.keystore.password", "secret", "", "Password of ssl.keystore.location."),
    Property("ssl.keystore.type", "enum", "", "Taken for Java's sake: what ssl.keystore.location is shows in the "
             "file.",
             choices=("", "pkcs12", "pem", "jks")),
    Property("ssl.truststore.type", "enum", "", "The same for ssl.ca.location.",
             choices=("", "pkcs12", "pem", "jks")),
    Property("ssl.endpoint.identification.algorithm", "enum", "https", "Check that the broker's certificate names the "
             "host that was dialled; none switches the check off.",
             choices={"https": "https", "none": "none", "": "none"}),
    Property("enable.ssl.certificate.verification", "bool", True, "Check the brokers' certificates at all."),
    Property("ssl.enabled.protocols", "list", ("TLSv1.2", "TLSv1.3"), "Versions of TLS that may be spoken."),
    Property("ssl.protocol", "enum", "", "Highest version of TLS that may be spoken, if not the highest of "
             "ssl.enabled.protocols.", choices=("", "tls", "tlsv1.2", "tlsv1.3")),
    Property("ssl.cipher.suites", "str", "", "Ciphers for TLS 1.2, under OpenSSL's names separated by colons or "
             "Java's separated by commas. TLS 1.3 always offers all of its own."),
    Property("ssl.curves.list", "str", "", "Groups for the exchange of keys, under OpenSSL's names separated by "
             "colons, for example X25519:P-256; all of OpenSSL's when empty. More than one needs Python 3.15."),
    # SASL
    Property("sasl.mechanism", "enum", "GSSAPI", "How to authenticate.", aliases=("sasl.mechanisms",),
             choices={name.lower(): name for name in MECHANISMS}),
    Property("sasl.username", "str", "", "User for PLAIN and SCRAM."),
    Property("sasl.password", "secret", "", "Password for PLAIN and SCRAM."),
    Property("sasl.scram.tokenauth", "bool", False, "User and password for SCRAM are the id and key of a delegation "
             "token.", kip="KIP-48"),
    Property("sasl.jaas.config", "secret", "", "Java's way to give the credentials, for example "
             "`PlainLoginModule required username=\"u\" password=\"p\";`. Understood of PlainLoginModule, "
             "ScramLoginModule, OAuthBearerLoginModule, Krb5LoginModule and Amazon's IAMLoginModule.", kip="KIP-85"),
    Property("sasl.kerberos.service.name", "str", "kafka", "First part of the brokers' Kerberos principal."),
    Property("sasl.kerberos.principal", "str", "", "This client's Kerberos principal; that of the ticket cache or "
             "keytab when empty."),
    Property("sasl.kerberos.keytab", "str", "", "File of keys for the principal; the ticket cache of kinit is used "
             "when empty."),
    Property("sasl.aws.profile", "str", "", "Profile in AWS's files whose keys AWS_MSK_IAM signs with (needs "
             "headrace[aws]); what AWS's programs take by themselves when empty."),
    Property("sasl.aws.region", "str", "", "AWS region of the brokers; what their names say when empty, else that of "
             "the profile or of AWS_DEFAULT_REGION."),
    Property("sasl.aws.role.arn", "str", "", "Role to take before signing, by its ARN."),
    Property("sasl.aws.role.session.name", "str", "headrace", "What AWS's records call the role's session."),
    Property("sasl.aws.role.external.id", "str", "", "Id that the role's owner wants to be told."),
    Property("sasl.aws.sts.region", "str", "", "AWS region where the role is taken; that of the brokers when empty."),
    Property("oauth_cb", "callable", None, "Called as oauth_cb(sasl.oauthbearer.config) whenever OAUTHBEARER needs a "
             "token, and when a blocking client is made; returns (token, expiry as seconds since the epoch[, principal"
             "[, extensions]]). It runs in a thread of its own, a coroutine function on the client's loop."),
    Property("sasl.oauthbearer.method", "enum", "", "default: oauth_cb or an unsecured token; oidc: what "
             "sasl.oauthbearer.token.endpoint.url gives for sasl.oauthbearer.grant.type. Found out when empty.",
             choices=("", "default", "oidc"),
             kip="KIP-768"),
    Property("sasl.oauthbearer.token.endpoint.url", "str", "", "Where to get tokens with oidc.", kip="KIP-768"),
    Property("sasl.oauthbearer.metadata.authentication.type", "enum", "none", "Who says, with oidc, who this client "
             "is, so that it needs no secret. azure_imds: the metadata service of an Azure machine, whose address is "
             "the endpoint's default. aws_iam: AWS, by the role of the machine, pod or function (needs "
             "headrace[aws]). Both are told what they need by sasl.oauthbearer.config.",
             choices=("none", "azure_imds", "aws_iam")),
    Property("sasl.oauthbearer.grant.type", "enum", "client_credentials", "How a token is asked for: with client id "
             "and secret, or an assertion in the secret's place (KIP-1258), or with nothing but an assertion "
             "(jwt-bearer).", choices=GRANTS, kip="KIP-1139"),
    Property("sasl.oauthbearer.jwt.retriever.class", "enum", "", "Java's way to choose the grant type: a class of "
             "Kafka's own.", choices={"": "", **{_OF_OAUTH + name.lower(): grant for name, grant in (
                 ("DefaultJwtRetriever", ""), ("ClientCredentialsJwtRetriever", GRANTS[0]),
                 ("JwtBearerJwtRetriever", JWT_BEARER))}}, kip="KIP-1139",
             otherwise="other classes of Java cannot run here: give oauth_cb"),
    Property("sasl.oauthbearer.client.id", "str", "", "Id of this client at the token endpoint.",
             aliases=("sasl.oauthbearer.client.credentials.client.id",)),
    Property("sasl.oauthbearer.client.secret", "secret", "", "Secret of this client at the token endpoint.",
             aliases=("sasl.oauthbearer.client.credentials.client.secret",)),
    Property("sasl.oauthbearer.scope", "str", "", "Scope to ask for at the token endpoint."),
    Property("sasl.oauthbearer.header.urlencode", "bool", False, "Encode id and secret as in a URL before they go into "
             "the header of the request, as RFC 6749 wants it and few token endpoints do.", kip="KIP-1025"),
    Property("sasl.oauthbearer.assertion.file", "str", "", "File with an assertion (a signed JWT) that another program "
             "renews; it is read anew for each token. No key and no claims are needed then.", kip="KIP-1139"),
    Property("sasl.oauthbearer.assertion.private.key.file", "str", "", "File of the private key in PEM that signs an "
             "assertion for each token (needs headrace[tls]); read anew when it has changed.", kip="KIP-1139"),
    Property("sasl.oauthbearer.assertion.private.key.pem", "secret", "", "The private key as PEM text, instead of a "
             "file."),
    Property("sasl.oauthbearer.assertion.private.key.passphrase", "secret", "", "Password of the private key.",
             kip="KIP-1139"),
    Property("sasl.oauthbearer.assertion.algorithm", "enum", "RS256", "How the assertion is signed: with an RSA key, "
             "or with one of the curve P-256.", choices={"rs256": "RS256", "es256": "ES256"}, kip="KIP-1139"),
    Property("sasl.oauthbearer.assertion.jwt.template.file", "str", "", "File with JSON, `header` and `payload`, of "
             "what the assertion says besides; the claims below and what changes with each assertion count instead of "
             "its own.", aliases=("sasl.oauthbearer.assertion.template.file",), kip="KIP-1139"),
    *(Property(f"sasl.oauthbearer.assertion.claim.{name}", "str", "", doc, kip="KIP-1139") for name, doc in (
        ("aud", "For whom the assertion is: what the token endpoint wants to be called."),
        ("iss", "Who makes the assertion: mostly the id of this client at the token endpoint."),
        ("sub", "For whom a token is asked."))),
    Property("sasl.oauthbearer.assertion.claim.exp.seconds", "int", 300, "An assertion expires so long after it was "
             "made.", unit="s", low=1, high=INT32, kip="KIP-1139"),
    Property("sasl.oauthbearer.assertion.claim.nbf.seconds", "int", 60, "An assertion holds from so long before it was "
             "made, for clocks that differ.", unit="s", low=0, high=INT32, kip="KIP-1139"),
    Property("sasl.oauthbearer.assertion.claim.jti.include", "bool", False, "Give each assertion an id of its own, so "
             "that none can be used twice.", kip="KIP-1139"),
    Property("sasl.oauthbearer.extensions", "str", "", "SASL extensions for the broker: name=value, separated by "
             "commas; a comma within a value has a backslash in front.", kip="KIP-342"),
    Property("sasl.oauthbearer.config", "secret", "", "Given to oauth_cb; or what an unsecured token shall say: "
             "`principal=alice scope=a,b lifeSeconds=3600 extension_name=value`; or with azure_imds "
             "`query=api-version=2018-02-01&resource=...&client_id=...`; or with aws_iam "
             "`region=...,audience=...` and possibly `duration_seconds=`, `signing_algorithm=`, `sts_endpoint=`, "
             "`tag_NAME=`."),
    Property("enable.sasl.oauthbearer.unsecure.jwt", "bool", False, "Make unsigned tokens, for tests only."),
    Property("https.ca.location", "str", "", "File or directory of CA certificates in PEM for the token endpoint; the "
             "system's own when empty or `probe`."),
    Property("https.ca.pem", "str", "", "The same as PEM text."),
    Property("sasl.login.refresh.window.factor", "float", 0.8, "Get a new token when this part of the old one's life "
             "is over.", low=0.5, high=1.0),
    Property("sasl.login.read.timeout.ms", "int", 10_000, "Longest wait for the token endpoint's answer.",
             unit="ms", low=10, high=300_000),
    Property("sasl.login.connect.timeout.ms", "int", 10_000, "Longest wait for a connection to the token endpoint.",
             unit="ms", low=10, high=300_000),
    Property("sasl.login.retry.backoff.ms", "int", 100, "First wait before a token is asked for again.", unit="ms",
             low=1, high=300_000),
    Property("sasl.login.retry.backoff.max.ms", "int", 10_000, "Longest wait before a token is asked for again.",
             unit="ms", low=1, high=300_000),
    Property("socket.connection.setup.timeout.ms", "int", 30_000, "Longest time for opening a connection, TLS and "
             "handshake included.", unit="ms", low=10, high=INT32, kip="KIP-601"),
    Property("socket.connection.setup.timeout.max.ms", "int", 0, "What Java lets that time grow to. Here it is the "
             "time of every attempt, unless the other one is longer; 0 leaves that one alone.", unit="ms", low=0,
             high=INT32, kip="KIP-601"),
    Property("socket.timeout.ms", "int", 60_000, "Longest wait for the reply to a request that has no time-out of "
             "its own. Where it is not given, a transactional producer's is 100 ms less than its "
             "transaction.timeout.ms, if that is less.", unit="ms", low=10, high=300_000),
    Property("connections.max.idle.ms", "int", 540_000, "Close a connection that was not used for so long; 0 never.",
             unit="ms", low=0, high=INT32),
    Property("reconnect.backoff.ms", "int", 50, "First wait before a broker is dialled again.", unit="ms", low=0,
             high=3_600_000),
    Property("reconnect.backoff.max.ms", "int", 1_000, "Longest wait between two dials of one broker; the wait doubles "
             "up to it, with jitter.", unit="ms", low=0, high=3_600_000, kip="KIP-144"),
    Property("retry.backoff.ms", "int", 100, "First wait before a failed request is sent again.", unit="ms", low=1,
             high=300_000),
    Property("retry.backoff.max.ms", "int", 1_000, "Longest wait before a failed request is sent again; the wait "
             "doubles up to it, with jitter.", unit="ms", low=1, high=300_000, kip="KIP-580"),
    Property("topic.metadata.refresh.interval.ms", "int", 300_000, "Refresh metadata at least so often; -1 only when "
             "it is needed.", unit="ms", low=-1, high=3_600_000),
    Property("metadata.max.age.ms", "int", 0, "Java's name for topic.metadata.refresh.interval.ms; the shorter one "
             "counts if both are given. 0 leaves that one alone.", unit="ms", low=0, high=86_400_000),
    Property("metadata.recovery.strategy", "enum", "rebootstrap", "What to do when no known broker answers: start "
             "again from bootstrap.servers, or keep trying.", choices=("rebootstrap", "none"), kip="KIP-899"),
    Property("metadata.recovery.rebootstrap.trigger.ms", "int", 300_000, "Start again from bootstrap.servers when no "
             "metadata came for so long although it was asked for, if all brokers that are known failed not sooner.",
             unit="ms", low=0, high=INT32, kip="KIP-1102"),
    Property("allow.auto.create.topics", "bool", False, "Let metadata requests create topics that do not exist, if the "
             "brokers permit it. Producers ask for it unless this is given, as in librdkafka.", roles=_PCS),
    Property("broker.address.family", "enum", "any", "Addresses of brokers to dial: those of IPv4, of IPv6, or all.",
             choices=("any", "v4", "v6")),
    Property("socket.keepalive.enable", "bool", True, "Let the system probe connections that are silent."),
    Property("socket.nagle.disable", "bool", True, "Send small packets at once (TCP_NODELAY)."),
    Property("receive.message.max.bytes", "int", 100_000_000, "Largest reply that is accepted; a larger one closes the "
             "connection.", unit="bytes", low=1_000, high=INT32),
    Property("socket.send.buffer.bytes", "int", 0, "Size of the socket's send buffer; 0 leaves the system's.",
             aliases=("send.buffer.bytes",), unit="bytes", low=0, high=100_000_000),
    Property("socket.receive.buffer.bytes", "int", 0, "Size of the socket's receive buffer; 0 leaves the system's.",
             aliases=("receive.buffer.bytes",), unit="bytes", low=0, high=100_000_000),
    # Callbacks
    Property("error_cb", "callable", None, "Called as error_cb(KafkaError) for errors that belong to no record, from "
             "`poll()`."),
    Property("throttle_cb", "callable", None, "Called as throttle_cb(ThrottleEvent) when a broker's reply says that it "
             "slows this client down, and with 0 seconds when that is over, from `poll()`.", roles=_PCS),
    Property("stats_cb", "callable", None, "Called as stats_cb(text) with the client's statistics in JSON every "
             "statistics.interval.ms, from `poll()`.", roles=_PCS),
    Property("statistics.interval.ms", "int", 0, "Time between two calls of stats_cb; 0 makes none.", roles=_PCS,
             unit="ms", low=0, high=86_400_000),
    Property("logger", "logger", None,
             "logging.Logger to write to instead of `headrace`, or another object with its method `log()`."),
)
