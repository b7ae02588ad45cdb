"""What every room needs and no paper names: devices, files, threads, linear algebra, statistics."""
