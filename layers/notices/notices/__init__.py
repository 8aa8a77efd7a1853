"""Requester notices: tell the person who asked for a job how it ended."""
