"""The rules of Avro for columns: types, resolution, programs, and the plain twins that run them."""
