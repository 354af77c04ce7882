"""What random tests draw: arguments of public functions, array programs, jaxprs, loop nests."""
