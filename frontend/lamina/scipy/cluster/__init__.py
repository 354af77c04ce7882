"""Clustering: vq."""

from lamina.scipy.cluster import vq as vq
