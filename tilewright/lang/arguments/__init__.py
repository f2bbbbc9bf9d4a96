"""Arguments of compiled functions: arrays of the user's frameworks, stand-ins, streams, numbers, and signatures."""
