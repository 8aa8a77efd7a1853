"""Stand-ins for what the tests cannot have, as strict as the real thing where its emulators are not."""
