/* Nothing: the library is its list of needed libraries. A translation unit may not be empty. */
typedef int nothing;
