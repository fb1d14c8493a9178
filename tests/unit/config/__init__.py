"""The properties of librdkafka and of Java's clients, as data, and the tests that headrace knows each of them."""
