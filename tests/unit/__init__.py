"""One folder for each layer of `src/headrace`, one file for each module where that is possible."""
