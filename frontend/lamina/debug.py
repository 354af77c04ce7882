"""Looking at values while compiled programs run."""

from lamina.callbacks.breakpoint import breakpoint as breakpoint
from lamina.callbacks.debugging import callback as callback
from lamina.callbacks.debugging import print as print
