"""Values that are put together from parts (concatenations, pads, updates) are computed part by part."""
