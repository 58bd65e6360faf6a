#include "kymo.h"
int main(void) { return 0; }
