"""Reading as a member of a share group: sessions, records that are held, and what became of them."""
