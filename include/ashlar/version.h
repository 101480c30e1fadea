// Version of the library and of the file format it reads and writes.
#ifndef ASHLAR_VERSION_H_
#define ASHLAR_VERSION_H_

#define ASHLAR_VERSION_MAJOR 0
#define ASHLAR_VERSION_MINOR 1
#define ASHLAR_VERSION_PATCH 0
#define ASHLAR_VERSION "0.1.0"
#define ASHLAR_FORMAT_VERSION_READ_MIN 1
#define ASHLAR_FORMAT_VERSION_WRITE 1

#endif  // ASHLAR_VERSION_H_
