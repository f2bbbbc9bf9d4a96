"""Tests of the CPU machine."""
