/* Code under test that is linked with the runtime which says the driver's version. */
extern int cudaDriverGetVersion(int *version);

int ask_linked_version(void)
{
    int version = 0;
    return cudaDriverGetVersion(&version) == 0 ? version : -1;
}
