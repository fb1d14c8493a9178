"""Our messages against those of the released Java client: fields, bytes, error codes."""
