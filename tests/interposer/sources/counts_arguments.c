/* Exits with 40 and the number of its arguments, its own name among them. */
int main(int count, char **arguments)
{
    (void)arguments;
    return 40 + count;
}
