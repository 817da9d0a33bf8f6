"""What every room stands on: errors, files, devices, words and where results come from."""
