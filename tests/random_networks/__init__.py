"""Random networks that only tests want, beside those of the campaigns (overlay/fuzz): with additions, with
concatenations, and with layers of both engines in turn. A ``Pick`` makes the choices, as there."""
