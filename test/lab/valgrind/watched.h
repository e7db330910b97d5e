/* Where watched leaves the log's descriptor and shim.so finds it: beyond those
 * that tests use, below every limit. */
#ifndef WATCHED_H
#define WATCHED_H

#define LOG_DESCRIPTOR 1000

#endif
