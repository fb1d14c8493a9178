"""JSON texts as columns: types from DDL and from JSON Schemas, and the plain twin; `json_columns` is the door."""
