#!/bin/sh
# A git that answers nothing, whatever it is asked for.
exec sleep infinity
