"""Serializers of a Schema Registry's formats, on any registry client: which schema, its bytes, and back."""
