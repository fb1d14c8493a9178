"""The embedded Schema Registry: Confluent's REST API over the embedded log.

What is registered lies in the topic `_schemas`, in Confluent's format, and nowhere else: the state here is what the
records say, and every call looks first whether there are new ones. Handlers are pure: the server gives them the time.

Read next: `broker.registry.rest_api`, then `broker.registry.registrations`.
"""
