"""The producer: engine (`producer_engine`), rules about waiting (`producer_calls`), and the faces that call them."""
