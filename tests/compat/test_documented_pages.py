"""What each page of the CuTe DSL's public documentation shows, and which test of ours runs it.

A row is the page, the idea of a snippet, and ``file::test``. The tests are programs of our own. Rows of ``libraries``
are forms and names that libraries of kernels and published programs were found to need.
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
utils (API)                 | get_kernel_smem_size                                 | lang/test_documented_names.py::test_the_shared_memory_of_a_kernel_is_that_of_its_last_launch
cute (API)                  | make_ptr with a swizzle                              | lang/test_documented_names.py::test_pointers_that_are_made_with_a_swizzle
cute (API)                  | TensorSSA.to_vector                                  | lang/test_documented_names.py::test_elements_as_a_vector_and_back
cute_arch (API)             | nsmid, nwarpid, gridid, sizes of shared memory       | lang/test_arch_names.py::test_registers_of_a_launch
cute_arch (API)             | mul_hi of 64 bits                                    | lang/test_arch_names.py::test_upper_halves_of_products_of_64_bits
pipeline (API)              | MbarrierArray.test_wait                              | pipeline/test_sync_objects.py::test_a_stage_is_asked_for_without_a_wait
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
tcgen05_programming         | the whole GEMM                                       | documentation/test_tcgen05_guide.py::test_the_whole_gemm
tcgen05_programming         | staged layouts of scale factors                      | documentation/test_tcgen05_guide.py::test_the_layout_of_scale_factors_keeps_its_stages
tcgen05_programming         | operations, tiled MMAs, layouts of operands          | documentation/test_tcgen05_guide.py::test_names_and_forms_of_operations
iket_profiling              | marks are asked for                                  | documentation/test_caching_and_options.py::test_marks_in_kernels_are_asked_for
cute (API)                  | TensorSSA: operators, reductions, broadcasts         | documentation/test_tensors_and_layouts.py::test_broadcasts
cute (API)                  | the layout algebra                                   | documentation/test_tensors_and_layouts.py::test_the_layout_algebra_in_a_jit_function
libraries                   | annotations: cutlass.Layout and others               | compat/test_names_of_libraries.py::test_names_for_annotations_at_the_root
libraries                   | JitCompiledFunction, tcgen05.MmaOp to import         | compat/test_idioms.py::test_names_for_annotations_and_isinstance
libraries                   | PipelineState(stages=0)                              | compat/test_names_of_libraries.py::test_a_state_of_no_stages_may_be_moved_on_where_it_is_never_read
libraries                   | numbers and Booleans in and, or, not                 | lang/test_mixed_kinds.py::test_numbers_and_booleans_in_logic
libraries                   | loc=, ip= in every public method                     | lang/test_location_keywords.py::test_every_public_method_takes_them
libraries                   | Constexpr fields stay static                         | lang/test_mixed_kinds.py::test_constexpr_fields_stay_static
libraries                   | a tiler of one mode keeps no extra level             | compat/test_tiles_and_orders.py::test_tiles_of_one_mode_have_no_extra_level
libraries                   | domain_offset with None                              | lang/test_mixed_kinds.py::test_none_does_not_move_a_mode
libraries                   | calc_packed_f32x2_op                                 | compat/test_library_forms.py::test_packed_arithmetic_by_the_operation
libraries                   | StMatrix16x8x8bOp                                    | blackwell/test_matrix_copies.py::test_accumulators_of_8_bits_are_stored_along_m
libraries                   | utils.block_copy                                     | compat/test_whole_tiles.py::test_each_block_copies_its_tile
libraries                   | CpReduceOp                                           | compat/test_primitives.py::test_bulk_reductions
libraries                   | base_dsl.typing.Vector                               | compat/test_vectors_and_bulk_bytes.py::test_vectors_of_numbers
libraries                   | nvvm.cvt_packfloat                                   | compat/test_tensor_copies_of_nvvm.py::test_two_floats_in_one_integer
libraries                   | nvvm.elect_sync                                      | compat/test_names_of_libraries.py::test_one_lane_of_a_warp_by_its_condition
libraries                   | set_name_prefix of host functions                    | compat/test_names_of_libraries.py::test_the_prefix_of_a_host_function
libraries                   | modules that are imported and hardly used            | compat/test_names_of_libraries.py::test_modules_that_are_imported
libraries                   | stand-ins behave as Python objects do                | compat/test_stand_ins.py::test_stand_ins_behave_as_python_objects
libraries                   | update_tma_descriptor                                | hopper/test_changed_maps.py::test_the_tensor_that_a_changed_map_describes
libraries                   | a whole float as a number of threads                 | lang/test_mixed_kinds.py::test_a_whole_number_of_agents_may_be_a_float
libraries                   | make_layout(())                                      | lang/test_mixed_kinds.py::test_an_empty_shape_is_the_layout_of_a_scalar
libraries                   | Tensor._dtype                                        | compat/test_names_of_libraries.py::test_the_element_type_and_the_address_by_other_names
libraries                   | _mlir.dialects.math                                  | compat/test_dialects.py::test_functions_of_one_float
libraries                   | experimental.copy of two modes of three              | compat/test_experimental.py::test_a_tile_of_two_modes_of_a_tensor_of_three
libraries                   | constraints of inline PTX                            | lang/test_ptx_constraints.py::test_registers_as_results_operands_and_both
libraries                   | inline PTX that reaches memory                       | lang/test_ptx_of_memory.py::test_stores_and_atomics
libraries                   | cooperative launches that do not fit                 | compat/test_library_forms.py::test_cooperative_launches_that_do_not_fit_are_refused_with_the_drivers_number
libraries                   | Event.cuda_event                                     | compat/test_torch.py::test_streams_events_and_the_device
libraries                   | make_ptr without a memory space                      | compat/test_names_of_libraries.py::test_pointers_to_global_memory_and_without_a_memory_space_stand_for_each_other
libraries                   | stride_order of fake tensors                         | compat/test_tiles_and_orders.py::test_the_mode_of_order_0_is_the_fastest
libraries                   | input_output_aliases                                 | jax/test_cutlass_call.py::test_an_aliased_output_is_not_passed_twice
libraries                   | tensors begin at 256 bytes                           | compat/test_torch_aligned.py::test_each_new_tensor_begins_at_a_multiple_of_256
libraries                   | exported functions on the host                       | export/test_load.py::test_the_simulator_runs_it_where_it_was_exported
libraries                   | Pointer.raw_ptr                                      | compat/test_vectors_and_bulk_bytes.py::test_a_raw_pointer_under_a_swizzle_has_the_address_of_now
libraries                   | strides of 0 that do not fit are said                | lang/test_mixed_kinds.py::test_stride_of_zero_is_named_in_the_error
libraries                   | errors of missing names                              | compat/test_names_of_libraries.py::test_errors_of_names_are_in_the_words_of_the_program
libraries                   | marked functions are pickled by name                 | compat/test_names_of_libraries.py::test_marked_functions_are_pickled_by_name
libraries                   | bulk tensor copies through nvvm                      | compat/test_tensor_copies_of_nvvm.py::test_a_box_by_the_address_of_its_tensor_map
libraries                   | export_to_c beside another module                    | export/test_files.py::test_only_the_files_of_another_module_are_kept
libraries                   | a layout with stages makes a TMA atom                | compat/test_names_of_libraries.py::test_a_layout_with_stages_makes_a_tma_atom
"""  # noqa: E501 - a table
ROWS = [tuple(part.strip() for part in line.split("|")) for line in PAGES.strip().splitlines()]


@pytest.mark.parametrize(("page", "idea", "place"), ROWS, ids=[f"{page}: {idea}" for page, idea, _ in ROWS])
def test_a_test_runs_the_idea(page: str, idea: str, place: str) -> None:
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in functions, f"{page} ({idea}): {place} is gone"
