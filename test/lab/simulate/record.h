/*
 * What happens at one server in a simulated run, written to a file, so that differential.c
 * can ask a real Redis server the same and compare. Each entry is a struct entry and
 * then that many bytes.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdint.h>

enum entry_kind {
	ENTRY_REQUEST = 'R', /* the bytes of the request; its messages follow */
	ENTRY_MESSAGE = 'M', /* to this connection, of the request before */
	ENTRY_ANSWER = 'A',  /* to the request */
	ENTRY_CLOSED = 'C',  /* the server has lost this connection */
	ENTRY_BUSY = 'B',    /* a client's script begins, and runs on */
	ENTRY_IDLE = 'I',    /* it has ended */
	ENTRY_SCRIPTS = 'S', /* it was restarted with its data */
	ENTRY_EMPTY =
		'E', /* it has lost its data; and it was restarted if that follows */
};

struct entry {
	int64_t kind, connection, time /* us since 1970 */, size;
};

#endif
