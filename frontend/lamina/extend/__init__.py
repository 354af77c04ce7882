"""What libraries that define primitives of their own build on."""

from lamina.extend import core as core
from lamina.extend import linear_util as linear_util
from lamina.extend import source_info_util as source_info_util
