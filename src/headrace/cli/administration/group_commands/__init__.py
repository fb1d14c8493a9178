"""`headrace groups` and `headrace share-groups`.

groups           consumer groups: the command
group_offsets    how far they are, and who reads
group_lag        how far they are behind, once or again and again
group_resets     where they go on
share_groups     share groups: the command
"""
