"""How arrays are spread over devices: meshes, partition specs, shardings."""

from lamina.config import no_collectives as no_collectives
from lamina.core.manual_axes import ManualAxisType as ManualAxisType
from lamina.core.manual_axes import UnreducedKind as UnreducedKind
from lamina.sharding.arrays import (
    make_array_from_callback as make_array_from_callback,
)
from lamina.sharding.arrays import (
    make_array_from_process_local_data as make_array_from_process_local_data,
)
from lamina.sharding.arrays import (
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from lamina.sharding.arrays import reshard as reshard
from lamina.sharding.axis_kinds import auto_axes as auto_axes
from lamina.sharding.axis_kinds import explicit_axes as explicit_axes
from lamina.sharding.kinds import make_single_device_sharding as make_single_device_sharding
from lamina.sharding.mesh import AbstractDevice as AbstractDevice
from lamina.sharding.mesh import AbstractMesh as AbstractMesh
from lamina.sharding.mesh import AxisType as AxisType
from lamina.sharding.mesh import Mesh as Mesh
from lamina.sharding.mesh import get_abstract_mesh as get_abstract_mesh
from lamina.sharding.mesh import get_mesh as get_mesh
from lamina.sharding.mesh import make_mesh as make_mesh
from lamina.sharding.mesh import set_mesh as set_mesh
from lamina.sharding.mesh import use_abstract_mesh as use_abstract_mesh
from lamina.sharding.mesh import use_mesh as use_mesh
from lamina.sharding.shardings import NamedSharding as NamedSharding
from lamina.sharding.shardings import Sharding as Sharding
from lamina.sharding.shardings import SingleDeviceSharding as SingleDeviceSharding
from lamina.sharding.spec import PartitionSpec as PartitionSpec

P = PartitionSpec
