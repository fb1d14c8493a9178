"""The native twin has the name and type of the plain one."""

from headrace.records.columns.joined_rows import join_rows as join_rows
