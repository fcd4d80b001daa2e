/*
 * Compares the table of driver_table.h with the typedefs of the CUDA toolkit, and the declarations of abi.h with its structs.
 * Compiling it is the test; it needs the toolkit's headers and nothing else.
 */
#include <stddef.h>
#include <cuda.h>
#include <cudaTypedefs.h>

#define cf_mem_handle CUmemGenericAllocationHandle
#define cf_mem_prop CUmemAllocationProp
#define cf_granularity CUmemAllocationGranularity_flags
#define cf_advise CUmem_advise
#define cf_copy_attributes CUmemcpyAttributes
#define cf_ctx_params CUctxCreateParams
#define cf_limit CUlimit
#define cf_loading_mode CUmoduleLoadingMode
#define cf_function_state CUfunctionLoadingState
#define cf_jit_option CUjit_option
#define cf_library_option CUlibraryOption
#define cf_uuid CUuuid
#define cf_node_params CUgraphNodeParams
#define cf_conditional CUgraphConditionalHandle
#define cf_ipc_handle CUipcMemHandle
#define cf_dev_resource CUdevResource
#define cf_dev_resource_type CUdevResourceType
#define cf_dev_resource_desc CUdevResourceDesc
#define cf_green CUgreenCtx

#include "driver_table.h"

/* The typedef is found by name and version, so a wrong version does not compile either. */
#define CHECK(field, name, version, args) CHECK_(field, version, args)
#define CHECK_(field, version, args)                                                                                             \
    _Static_assert(__builtin_types_compatible_p(CUresult(*) args, CF_TYPE(field, version)), #field " at " #version);
#define CF_TYPE(field, version) PFN_cu##field##_v##version
#define PFN_cuGraphGetEdges_10000_v10000 PFN_cuGraphGetEdges_v10000
#define PFN_cuGraphNodeGetDependencies_10000_v10000 PFN_cuGraphNodeGetDependencies_v10000
#define PFN_cuGraphNodeGetDependentNodes_10000_v10000 PFN_cuGraphNodeGetDependentNodes_v10000
#define PFN_cuGraphKernelNodeGetParams_10000_v10000 PFN_cuGraphKernelNodeGetParams_v10000
#define PFN_cuGraphAddDependencies_10000_v10000 PFN_cuGraphAddDependencies_v10000
#define PFN_cuGraphRemoveDependencies_10000_v10000 PFN_cuGraphRemoveDependencies_v10000

CF_DRIVER_TABLE(CHECK)

_Static_assert(CU_LIMIT_STACK_SIZE == 0, "CF_LIMIT_STACK_SIZE");
_Static_assert(CU_MEM_ADVISE_SET_READ_MOSTLY == 1, "CF_ADVISE_SET_READ_MOSTLY");
_Static_assert(CU_MEM_ATTACH_GLOBAL == 1, "CF_ATTACH_GLOBAL");
_Static_assert(CU_STREAM_WAIT_VALUE_GEQ == 0, "CF_WAIT_VALUE_GEQ");
_Static_assert(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM == 1, "CF_COPY_ORDER_STREAM");
_Static_assert(CU_SYNC_POLICY_SPIN == 2, "CF_SYNC_POLICY_SPIN");
_Static_assert(CU_GRAPH_COND_ASSIGN_DEFAULT == 1 && CU_GRAPH_COND_TYPE_IF == 0, "CF_COND");
_Static_assert(CU_GREEN_CTX_DEFAULT_STREAM == 1 && CU_DEV_RESOURCE_TYPE_SM == 1, "CF_GREEN");
_Static_assert(CU_FUNC_ATTRIBUTE_NUM_REGS == 4, "CF_FUNC_ATTRIBUTE_NUM_REGS");
_Static_assert(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW == 1 && CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY == 3 &&
                   CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == 4,
               "CF_ATTRIBUTE");
_Static_assert(sizeof(CUmemAllocationProp) == 32 && sizeof(CUmemcpyAttributes) == 24 && sizeof(CUgraphNodeParams) == 256 &&
                   sizeof(CUdevResource) == 144,
               "struct sizes");
_Static_assert(offsetof(CUdevResource, sm) == 96 && offsetof(CUgraphNodeParams, conditional) == 16, "struct offsets");

int main(void)
{
    return 0;
}
