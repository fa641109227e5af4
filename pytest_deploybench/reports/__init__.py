"""Reports, made from records alone: values in, text out. A new form of report is a new module."""
