"""Model services, one file each: the file is the first part of a model's name (`demo:echo`)."""
