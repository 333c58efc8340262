/*
 * Facts of the CUDA APIs that the simulated libraries need: number, struct and flag values.
 *
 * Source: the public headers cuda.h, driver_types.h and cuda_runtime_api.h of CUDA 12.6, 12.8, 12.9
 * and 13.0. Nothing here is NVIDIA's text; no CUDA header is needed to build. CUresult and
 * cudaError_t share their numbers for every code below, so both are a plain int.
 */
#ifndef CUDABATCH_ABI_H
#define CUDABATCH_ABI_H

#include <stddef.h>
#include <stdint.h>

/* A static runtime keeps its functions to the object that it is linked into, as the vendor's archive does. */
#ifdef SIM_STATIC
#define CUDA_API __attribute__((visibility("hidden")))
#else
#define CUDA_API __attribute__((visibility("default")))
#endif

enum cuda_code {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_INVALID_PITCH = 12, /* the runtime's only */
    CUDA_INVALID_MEMCPY_DIRECTION = 21,
    CUDA_INSUFFICIENT_DRIVER = 35,
    CUDA_CALL_REQUIRES_NEWER_DRIVER = 36,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_INVALID_HANDLE = 400,
    CUDA_ILLEGAL_STATE = 401,
    CUDA_NOT_READY = 600,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_NOT_PERMITTED = 800,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_INVALIDATED = 901,
    CUDA_CAPTURE_ISOLATION = 905,
    CUDA_CAPTURE_IMPLICIT = 906,
    CUDA_CAPTURE_WRONG_THREAD = 908,
};

/* Versions are 1000 * major + 10 * minor, as cuDriverGetVersion returns them. */
#define FIRST_VERSION_WITH_BATCH 12080
#define FIRST_VERSION_WITHOUT_FAIL_INDEX 13000

/* CUdeviceptr: 64 bits in every ABI since CUDA 3.2; with unified addressing a host address fits too. */
typedef uintptr_t cuda_address;

/* The three stream handles that are numbers, not pointers. */
#define STREAM_NULL ((void *)0)
#define STREAM_LEGACY ((void *)1)
#define STREAM_PER_THREAD ((void *)2)

enum { STREAM_FLAG_NON_BLOCKING = 1, STREAM_PRIORITY_LOWEST = 0, STREAM_PRIORITY_HIGHEST = -5 };
/* CUstreamCaptureMode and CUstreamCaptureStatus. */
enum { CAPTURE_GLOBAL = 0, CAPTURE_THREAD_LOCAL = 1, CAPTURE_RELAXED = 2 };
enum { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1, CAPTURE_INVALIDATED = 2 };

enum { EVENT_FLAG_DISABLE_TIMING = 2, EVENT_FLAG_INTERPROCESS = 4, EVENT_FLAGS_ALL = 7 };

/* CUmemLocation and cudaMemLocation. */
struct memory_location {
    int type;
    int id;
};

enum { LOCATION_DEVICE = 1, LOCATION_HOST = 2, LOCATION_HOST_NUMA = 3, LOCATION_HOST_NUMA_CURRENT = 4 };

/* CUmemcpyAttributes and cudaMemcpyAttributes: 24 bytes in every version. */
struct copy_attributes {
    int source_access_order;
    struct memory_location source_hint;
    struct memory_location destination_hint;
    unsigned flags;
};

_Static_assert(sizeof(struct copy_attributes) == 24, "the batch call's attributes are 24 bytes");

enum { ORDER_STREAM = 1, ORDER_DURING_API_CALL = 2, ORDER_ANY = 3 };
enum { COPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE = 1 };

/* Flags of cuMemHostAlloc (all without effect here) and of cuMemHostRegister; the runtime's are the same. */
enum { HOST_ALLOC_FLAGS_ALL = 7 };
enum { HOST_REGISTER_IO_MEMORY = 4, HOST_REGISTER_READ_ONLY = 8, HOST_REGISTER_FLAGS_ALL = 15 };

/* CUmemcpy3DOperand and cudaMemcpy3DOperand; only operands that are pointers are simulated. */
struct copy_operand {
    int type;
    union {
        struct {
            cuda_address address;
            size_t row_length;   /* 0: as long as the extent is wide */
            size_t layer_height; /* 0: as high as the extent */
            struct memory_location hint;
        } pointer;
        struct {
            void *handle;
            size_t offset[3];
        } array;
    };
};

enum { OPERAND_POINTER = 1, OPERAND_ARRAY = 2 };

/* One end of CUDA_MEMCPY2D; which address counts is the type's choice, and arrays are not simulated. */
struct copy_2d_end {
    size_t x_bytes, y;
    int type; /* CUmemorytype */
    const void *host;
    cuda_address device;
    void *array;
    size_t pitch;
};

/* CUDA_MEMCPY2D. */
struct copy_2d {
    struct copy_2d_end source, destination;
    size_t width_bytes, height;
};

_Static_assert(sizeof(struct copy_2d) == 128, "CUDA_MEMCPY2D is 128 bytes");

/* CUDA_MEMCPY3D_BATCH_OP and cudaMemcpy3DBatchOp; widths are bytes where both operands are pointers. */
struct copy_3d {
    struct copy_operand source;
    struct copy_operand destination;
    size_t width, height, depth;
    int source_access_order;
    unsigned flags;
};

_Static_assert(sizeof(struct copy_operand) == 40, "an operand of the 3D batch call is 40 bytes");
_Static_assert(sizeof(struct copy_3d) == 112, "an operation of the 3D batch call is 112 bytes");

/* CUmemPoolProps and cudaMemPoolProps. */
struct pool_properties {
    int allocation_type;
    int handle_types;
    struct memory_location location;
    void *security; /* Windows only */
    size_t limit;   /* 0: none */
    unsigned short usage;
    unsigned char reserved[54];
};

_Static_assert(sizeof(struct pool_properties) == 88, "the properties of a memory pool are 88 bytes");

/* CUmemAccessDesc and cudaMemAccessDesc. */
struct pool_access {
    struct memory_location location;
    int flags;
};

/* CUmemorytype and cudaMemoryType agree on these. */
enum { MEMORY_TYPE_UNREGISTERED = 0, MEMORY_TYPE_HOST = 1, MEMORY_TYPE_DEVICE = 2, MEMORY_TYPE_UNIFIED = 4 };

/* CUpointer_attribute. */
enum pointer_attribute {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE_POINTER = 3,
    POINTER_HOST_POINTER = 4,
    POINTER_IS_MANAGED = 8,
    POINTER_DEVICE_ORDINAL = 9,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
    POINTER_IS_MAPPED = 13,
    POINTER_POOL = 17,
};

/* CU_DEVICE_INVALID, and what cudaPointerGetAttributes gives as the device of unregistered memory. */
#define DEVICE_INVALID (-2)

/* Flags and statuses of cuGetProcAddress; cudaGetDriverEntryPoint uses the same numbers. */
enum { LOOKUP_DEFAULT = 0, LOOKUP_LEGACY_STREAM = 1, LOOKUP_PER_THREAD_STREAM = 2 };
enum { LOOKUP_FOUND = 0, LOOKUP_SYMBOL_NOT_FOUND = 1, LOOKUP_VERSION_NOT_SUFFICIENT = 2 };

#endif
