"""What is read: files, standard input, hex, log segments and what lies beside them."""
