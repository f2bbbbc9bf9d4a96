"""The programs say `import cutlass`: they are run by test_programs.py, not collected."""

collect_ignore_glob = ["programs/*"]
