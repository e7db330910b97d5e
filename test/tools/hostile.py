"""A server that says what it should not.

    hostile.py SOCKET CASE

listens on a Unix socket, and treats every connection as CASE says.

    hostile.py DIRECTORY

does so for every case, each on a socket of its own there, which
DIRECTORY/list names with the exit status that the case is worth.
"""

import os
import socket
import struct
import sys
import threading
import time

OK = b"+OK\r\n"
GRANTED = b"*2\r\n:1\r\n:1795257572071\r\n"


def bulk(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


def greet(connection):
    """Waits for the first exchange and answers what stands before EVAL."""
    got = b""
    while b"EVAL" not in got:
        data = connection.recv(65536)
        if not data:
            return False
        got += data
    connection.sendall(OK)
    return True


def says(data, then="stay"):
    def treat(connection):
        if greet(connection):
            connection.sendall(data)
            finish(connection, then)
    return treat


def at_once(data, then="stay"):
    def treat(connection):
        connection.sendall(data)
        finish(connection, then)
    return treat


def finish(connection, then):
    if then == "stay":
        time.sleep(60)
    elif then == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
    elif then == "half":
        connection.shutdown(socket.SHUT_WR)
        time.sleep(60)


def drip(data):
    def treat(connection):
        if greet(connection):
            for byte in data:
                connection.sendall(bytes([byte]))
                time.sleep(0.5)
    return treat


def flood(start, chunk):
    def treat(connection):
        if greet(connection):
            connection.sendall(start)
            while True:
                connection.sendall(chunk)
    return treat


CASES = {
    "nothing": (69, says(b"")),
    "hangs up at once": (69, at_once(b"", "close")),
    "hangs up after the request": (69, says(b"", "close")),
    "resets after the request": (69, says(b"", "reset")),
    "has too many clients, unasked":
        (69, at_once(b"-ERR max number of clients reached\r\n", "close")),
    "an empty error": (69, says(b"-\r\n")),
    "half-closes": (69, says(b"", "half")),
    "half a reply and silence": (69, says(b"*2\r\n:1\r\n:17")),
    "half a reply and the end": (69, says(b"*2\r\n:1\r\n:17", "close")),
    "one byte each half second": (69, drip(GRANTED)),
    "HTTP": (69, at_once(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    "terminal escapes": (69, says(b"-\x1b]0;owned\x07\x1b[31m\x9b\r\n")),
    "NUL and 0xff": (69, says(b"\0\xff\0\xff" * 100)),
    "a line without end": (69, flood(b"+", b"A" * 4096)),
    "a bulk of 2 GiB": (69, flood(b"$2147483647\r\n", b"A" * 65536)),
    "a bulk of 8 EiB": (69, says(b"$9223372036854775807\r\nA")),
    "a negative bulk": (69, says(b"$-5\r\n")),
    "a bulk of 12abc": (69, says(b"$12abc\r\n")),
    "a bulk that is longer": (69, says(b"$4\r\nPONGxx" + OK)),
    "an array of 2147483647": (69, says(b"*2147483647\r\n")),
    "an array of 4294967296": (69, says(b"*4294967296\r\n")),
    "a negative array": (69, says(b"*-2\r\n")),
    "10000 nested arrays": (69, says(b"*1\r\n" * 10000)),
    "an empty array": (69, says(b"*0\r\n")),
    "a nil array": (69, says(b"*-1\r\n")),
    "a nil": (69, says(b"$-1\r\n")),
    "an array of nils": (69, says(b"*2\r\n$-1\r\n$-1\r\n")),
    "a status": (69, says(OK)),
    "a bulk for a number": (69, says(b"*2\r\n$1\r\n1\r\n$1\r\n5\r\n")),
    "an unknown answer": (69, says(b"*2\r\n:7\r\n:5\r\n")),
    "a number with text behind": (69, says(b":1a\r\n")),
    "a number of 30 digits": (69, says(b":" + b"9" * 30 + b"\r\n")),
    "no fence": (69, says(b"*1\r\n:1\r\n")),
    "fence 0": (69, says(b"*2\r\n:1\r\n:0\r\n")),
    "a negative fence": (69, says(b"*2\r\n:1\r\n:-5\r\n")),
    "a fence beyond 2^53": (69, says(b"*2\r\n:1\r\n:9007199254740993\r\n")),
    "a reply too many": (69, says(GRANTED + b"+EXTRA\r\n")),
    "replies before the request": (69, at_once(OK + GRANTED + OK + OK)),
    "replies without end": (69, flood(b"", OK * 1000)),
    "a RESP3 push": (69, says(b">2\r\n+message\r\n+x\r\n")),
    "a RESP3 map": (69, says(b"%1\r\n+a\r\n:1\r\n")),
    "a RESP3 set": (69, says(b"~1\r\n:1\r\n")),
    "a RESP3 boolean": (69, says(b"#t\r\n")),
    "a RESP3 double": (69, says(b",1.5\r\n")),
    "a RESP3 null": (69, says(b"_\r\n")),
    "a RESP3 big number": (69, says(b"(123\r\n")),
    "a RESP3 blob error": (69, says(b"!5\r\nabcde\r\n")),
    "a page of the holders and silence":
        (69, says(b"*8\r\n:1\r\n$4\r\nzset\r\n:3\r\n:5\r\n:3\r\n:0\r\n*1\r\n"
                  + bulk(b"a" * 40 + b" 2500 100 1\n") + b"*0\r\n")),
    "a refusal that is too short": (69, says(b"*1\r\n:0\r\n")),
    "a refusal with texts for numbers":
        (69, says(b"*7\r\n:0\r\n+x\r\n+y\r\n+\r\n+z\r\n+0\r\n+\r\n")),
    "a text for a fence": (69, says(b"*2\r\n:1\r\n+5\r\n")),
    "a refusal without a holder":
        (75, says(b"*7\r\n:0\r\n:-1\r\n:-1\r\n+\r\n:-1\r\n:0\r\n+\r\n")),
    "a refusal with a hostile holder":
        (75, says(b"*7\r\n:0\r\n:5\r\n:5\r\n" + bulk(
            b"host=\x1b[31m\npid=-9\ncommand=\xff\xfe\0\x07\x9b'x\n")
            + b":99\r\n:0\r\n" + bulk(b"\x1b[31m\0" * 20))),
}

for code, errors in {
    65: ["WRONGTYPE Operation against a key holding the wrong kind of value"],
    77: ["NOAUTH Authentication required.",
         "WRONGPASS invalid username-password pair or user is disabled.",
         "NOPERM this user has no permissions to run the 'eval' command",
         "ERR The user executing the script can't run this command",
         "ERR Error running script (call to f_1): @user_script:1: -NOPERM no"],
    78: ["ERR DB index is out of range"],
    69: ["LOADING Redis is loading the dataset in memory",
         "READONLY You can't write against a read only replica.",
         "OOM command not allowed when used memory > 'maxmemory'.",
         "BUSY Redis is busy running a script.",
         "MOVED 15495 127.0.0.1:23065", "ASK 15495 127.0.0.1:23065",
         "CLUSTERDOWN Hash slot not served", "MASTERDOWN Link is down",
         "TRYAGAIN Multiple keys request during rehashing of slot",
         "MISCONF Redis is configured to save RDB snapshots",
         "NOREPLICAS Not enough good replicas to write.",
         "NOSCRIPT No matching script.", "EXECABORT Transaction discarded",
         "UNKILLABLE Sorry the script already executed write commands",
         "NOPROTO unsupported protocol version",
         "DENIED Redis is running in protected mode",
         "ERR unknown command 'EVAL'", "ERR max number of clients reached"],
}.items():
    for error in errors:
        CASES["-" + error] = (code, says(f"-{error}\r\n".encode()))


def serve(connection, treat):
    try:
        treat(connection)
    except OSError:
        pass
    connection.close()


def listen(path, treat):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen()
    os.rename(path + ".new", path)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, treat),
                         daemon=True).start()


def listen_to_all(directory):
    """Each case on a socket of its own; "list" says which: STATUS SOCKET NAME."""
    with open(directory + "/list.new", "w", encoding="ascii") as cases:
        for number, (name, (status, treat)) in enumerate(CASES.items()):
            path = f"{directory}/{number}.sock"
            threading.Thread(target=listen, args=(path, treat)).start()
            print(status, path, name, file=cases)
    os.rename(directory + "/list.new", directory + "/list")


if sys.argv[2:]:
    listen(sys.argv[1], CASES[sys.argv[2]][1])
else:
    listen_to_all(sys.argv[1])
