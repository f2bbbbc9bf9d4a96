"""What each page of the CuTe DSL's public documentation shows, and which test of ours runs it.

A row is the page, the idea of a snippet, and ``file::test``. The tests are programs of our own.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGES = """
dsl_introduction            | decorators with and without parentheses, preprocessor | documentation/test_introduction.py::test_decorators_with_parentheses_and_without_preprocessor
dsl_introduction            | who may call whom                                    | documentation/test_introduction.py::test_a_kernel_is_called_from_jit_only
dsl_introduction            | launch options as lists                              | documentation/test_introduction.py::test_launch_takes_lists_and_every_documented_option
dsl_introduction            | no_cache                                             | lang/host/test_documented.py::test_no_cache_forces_a_fresh_compilation
dsl_code_generation         | print while staging, printf while running            | documentation/test_caching_and_options.py::test_print_while_compiling_and_printf_while_running
dsl_control_flow            | range, range_constexpr, unroll                       | lang/host/test_documented.py::test_kinds_of_loops
dsl_control_flow            | if on constants and on numbers                       | lang/host/test_documented.py::test_branches
dsl_control_flow            | while on constants and on numbers                    | lang/host/test_documented.py::test_while_loops
dsl_control_flow            | a flag that leaves code out                          | lang/host/test_documented.py::test_compile_time_flag_removes_code
dsl_control_flow            | range_dynamic, dynamic_expr                          | lang/host/test_documented.py::test_dynamic_expr_and_range_dynamic
dsl_jit_arg_generation      | static and dynamic arguments print                   | lang/host/test_documented.py::test_static_and_dynamic_arguments
dsl_jit_arg_generation      | an epilogue as a Constexpr function                  | lang/host/test_documented.py::test_epilogue_as_a_constexpr_function
dsl_jit_arg_generation      | annotations are checked                              | documentation/test_jit_arguments.py::test_annotations_check_types
dsl_jit_arg_generation      | the protocols JitArgument and DynamicExpression      | documentation/test_jit_arguments.py::test_a_type_with_the_documented_protocols
dsl_jit_arg_generation      | adapters of foreign types                            | documentation/test_jit_arguments.py::test_an_adapter_for_a_foreign_type
dsl_struct_types            | named tuples print, branch, are replaced             | documentation/test_jit_arguments.py::test_named_tuples_are_replaced_in_branches_and_reach_kernels
dsl_struct_types            | frozen dataclasses                                   | documentation/test_jit_arguments.py::test_frozen_dataclasses
dsl_dynamic_layout          | a static layout and the tensor print                 | documentation/test_frameworks.py::test_tensors_print_as_documented_in_staged_functions
dsl_dynamic_layout          | one function for many shapes                         | lang/host/test_documented.py::test_dynamic_layout_is_reused
dsl_dynamic_layout          | a static size decides a branch                       | lang/host/test_documented.py::test_static_size_decides_a_branch_early
dsl_dynamic_layout          | a loop over a tensor                                 | lang/host/test_documented.py::test_loop_over_a_tensor
dsl_dynamic_layout          | shapes with run-time numbers print                   | lang/test_printing.py::test_tuples_with_run_time_numbers_print_as_documented
framework_integration       | packed 4-bit torch tensors show single elements      | lang/test_packed.py::test_pytorchs_pairs_are_tensors_of_single_numbers
basic_data_types            | Int128, Uint128                                      | lang/test_arch_names.py::test_integers_of_128_bits_on_the_host
basic_data_types            | Int128, Uint128 in kernels                           | lang/test_wide.py::test_every_operation_against_pythons_integers
cute_arch (API)             | atomic_fmax, warp_redux_sync, nanosleep              | lang/test_arch_names.py::test_extremes_of_floats_and_reductions_of_a_warp
runtime (API)               | masks of dynamic shapes and strides                  | lang/test_arch_names.py::test_masks_of_run_time_modes
basic_data_types            | 4- and 6-bit floats convert                          | lang/test_packed.py::test_numbers_round_to_the_nearest_even_and_saturate
cuda                        | modules and kernel launch                            | cuda/test_modules.py::test_modules_and_libraries
cuda                        | context, device, streams, memory                     | lang/test_documented_names.py::test_raw_device_memory
pipeline (API)              | SyncObject and what it is                            | pipeline/test_sync_objects.py::test_sync_object_base_class
pipeline (API)              | unaligned named barriers                             | pipeline/test_sync_objects.py::test_unaligned_barriers
cute (API)                  | FastDivmodDivisor                                    | lang/test_fast_divmod.py::test_quotients_and_remainders
dsl_jit_caching             | executors without their constants                    | documentation/test_caching_and_options.py::test_an_executor_takes_the_arguments_that_are_not_constexpr
dsl_jit_caching             | a cache of the user's own                            | documentation/test_caching_and_options.py::test_user_cache_of_compiled_kernels
dsl_jit_caching             | a changed global compiles again                      | lang/host/test_documented.py::test_a_changed_global_is_seen
dsl_jit_compilation_options | options as text and as types                         | documentation/test_caching_and_options.py::test_options_as_text_and_as_types
dsl_jit_compilation_options | wrong options                                        | documentation/test_caching_and_options.py::test_wrong_option_values_are_errors
types                       | Ratio                                                | documentation/test_types.py::test_ratios
types                       | ScaledBasis, E                                       | documentation/test_types.py::test_basis_strides
types                       | ComposedLayout and its parts                         | documentation/test_types.py::test_composed_layouts
types                       | struct, MemRange, Align, union                       | documentation/test_types.py::test_members_are_numbers_wherever_numbers_are_used
framework_integration       | implicit conversion                                  | lang/host/test_documented.py::test_implicit_conversion_keeps_the_leading_stride
framework_integration       | attributes and text of a tensor                      | documentation/test_frameworks.py::test_tensors_and_their_attributes_print_as_documented
framework_integration       | mark_layout_dynamic, mark_compact_shape_dynamic      | documentation/test_frameworks.py::test_the_layouts_that_the_page_prints
framework_integration       | pointers instead of DLPack                           | documentation/test_frameworks.py::test_bypassing_dlpack_with_pointers
debugging                   | __ptx__, __cubin__, __sass__, kept files             | documentation/test_caching_and_options.py::test_machine_code_as_text
debugging                   | variables of the environment                         | documentation/test_caching_and_options.py::test_the_variables_of_the_environment
debugging                   | set_name_prefix                                      | lang/test_documented_names.py::test_the_prefix_of_a_kernels_name
autotuning_gemm             | autotune_jit of a function                           | lang/test_testing.py::test_autotune_derives_and_prunes
autotuning_gemm             | autotune_jit of a class                              | lang/test_testing.py::test_autotune_of_a_class
autotuning_gemm             | autotune_suite                                       | lang/test_testing.py::test_a_suite_ranks_what_runs_everywhere
compile_with_tvm_ffi        | fake tensors promise what is checked                 | lang/host/test_tvm_ffi.py::test_promises_of_fake_tensors_are_checked
compile_with_tvm_ffi        | streams of the environment                           | lang/host/test_tvm_ffi.py::test_tvm_ffi_calls_omit_stream_and_none_arguments
limitations                 | lists take no run-time index                         | lang/host/test_documented.py::test_lists_take_no_run_time_index
limitations                 | types are promoted                                   | lang/host/test_documented.py::test_types_are_promoted
limitations                 | state of objects in loops                            | lang/host/test_documented.py::test_object_state_that_the_documentation_warns_of
wmma_programming            | the whole GEMM                                       | compat/programs/tensorop_gemm.py::kernel
wgmma_programming           | operations, shapes of partitions and fragments       | documentation/test_wgmma_guide.py::test_partitions_and_fragments
wgmma_programming           | a permutation of the tile                            | documentation/test_wgmma_guide.py::test_a_permutation_gives_each_warpgroup_more_values
iket_profiling              | marks are asked for                                  | documentation/test_caching_and_options.py::test_marks_in_kernels_are_asked_for
cute (API)                  | TensorSSA: operators, reductions, broadcasts         | documentation/test_tensors_and_layouts.py::test_broadcasts
cute (API)                  | the layout algebra                                   | documentation/test_tensors_and_layouts.py::test_the_layout_algebra_in_a_jit_function
"""  # noqa: E501 - a table
ROWS = [tuple(part.strip() for part in line.split("|")) for line in PAGES.strip().splitlines()]


@pytest.mark.parametrize(("page", "idea", "place"), ROWS, ids=[f"{page}: {idea}" for page, idea, _ in ROWS])
def test_a_test_runs_the_idea(page: str, idea: str, place: str) -> None:
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in functions, f"{page} ({idea}): {place} is gone"
