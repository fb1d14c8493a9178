"""What a coordinator keeps: groups, committed offsets, transactional ids."""
