collect_ignore = ["mistakes.py", "uses.py"]  # for type checkers; they are not run
