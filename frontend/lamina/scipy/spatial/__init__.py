"""Space: transform."""

from lamina.scipy.spatial import transform as transform
