/* Code under test with the vendor's static runtime in it: asks it for versions and for an entry point. */
extern int cudaRuntimeGetVersion(int *version), cudaDriverGetVersion(int *version);

int runtime_version(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == 0 ? version : -1;
}

int driver_version(void)
{
    int version = 0;
    return cudaDriverGetVersion(&version) == 0 ? version : -1;
}
