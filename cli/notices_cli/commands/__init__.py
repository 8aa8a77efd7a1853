"""The commands, one to a file: options in, a question to the tables and queues, an answer out."""
