"""What Spark needs beside `headrace.values`: its types, the columns of a plan, checks of frames, dead letters."""
