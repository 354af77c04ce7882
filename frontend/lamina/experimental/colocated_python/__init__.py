"""Python functions on the machine of the devices that their arguments are on.

All devices are this machine's: such a function is called here, with arrays on the CPU, and what it
gives goes to where its arguments were.
"""

from lamina.experimental.colocated_python.api import (
    colocated_cpu_devices as colocated_cpu_devices,
)
from lamina.experimental.colocated_python.api import colocated_python as colocated_python
from lamina.experimental.colocated_python.api import (
    colocated_python_class as colocated_python_class,
)
