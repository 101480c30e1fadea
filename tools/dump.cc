#include "tools/dump.h"
