#!/usr/bin/env python3
"""A peer that a TLS client may meet where it looks for a server.

    tls_peer.py DIR MODE [ARGUMENT ...]

Listens on a port of 127.0.0.1 whose number is in DIR/port as soon as it does,
and logs in DIR/log what comes, a line for each connection that has ended:
"hello" where it was a TLS ClientHello and nothing but perhaps an alert behind
it, "nothing", or "OTHER" and the bytes. What it does:

    silent              never says anything
    says HEX [silent]   says these bytes when something comes, and hangs up, or
                        is silent
    hang up             when something comes
    reset               the same with a reset
    flood               requests without end to begin a handshake (which a client
                        has to pass over while it is in one)
    drip MS PORT        a proxy to PORT whose answers come a byte in MS, while
                        there is no file DIR/quick
    cut N PORT          a proxy that hangs up behind N bytes of an answer
    corrupt N PORT      a proxy that turns the bits of byte N of an answer around
    redis CERT KEY HEX [silent]
                        speaks TLS, and says these bytes at the first request;
                        N*HEX is so many times them. Where it is silent then
                        and is told that it is the end, it logs "goodbye"
"""
import os
import socket
import ssl
import struct
import sys
import threading
import time

# small records, so that reading them takes longer than sending them
HELLO_REQUESTS = (b"\x16\x03\x03\x00\x04" + bytes(4)) * 100000


def describe(data):
    """Records: a ClientHello, and alerts."""
    kinds, rest = [], data
    while len(rest) >= 5 and rest[1] == 3:
        size = int.from_bytes(rest[3:5], "big")
        if len(rest) < 5 + size:
            break
        kinds.append((rest[0], rest[5]))
        rest = rest[5 + size:]
    if not data:
        return "nothing"
    if not rest and kinds[0] == (22, 1) and all(k[0] == 21 for k in kinds[1:]):
        return "hello"
    return "OTHER " + data.hex()


class Peer:
    def __init__(self, directory, mode, *arguments):
        self.log = open(os.path.join(directory, "log"), "a", encoding="ascii")
        self.directory = directory
        self.treat = getattr(self, mode)
        self.arguments = arguments

    # --- each is told where to put what it hears

    def silent(self, connection, heard):
        while data := connection.recv(65536):
            heard += data

    def says(self, connection, heard, data, then=""):
        heard += connection.recv(65536)
        connection.sendall(bytes.fromhex(data))
        if then == "":
            connection.shutdown(socket.SHUT_WR)
        self.silent(connection, heard)

    def hang(self, connection, heard, _):
        heard += connection.recv(65536)

    def reset(self, connection, heard):
        heard += connection.recv(65536)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))

    def flood(self, connection, heard):
        heard += connection.recv(65536)
        while True:
            connection.sendall(HELLO_REQUESTS)

    # --- proxies

    def relay(self, connection, port, answers):
        """answers takes each piece, hands it on, and says whether to go on."""
        server = socket.create_connection(("127.0.0.1", int(port)))

        def requests():
            try:
                while data := connection.recv(65536):
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        threading.Thread(target=requests, daemon=True).start()
        try:
            while data := server.recv(65536):
                if not answers(data):
                    break
        except OSError:
            pass
        server.close()

    def drip(self, connection, _, ms, port):
        def answers(data):
            for byte in data:
                connection.sendall(bytes([byte]))
                if not os.path.exists(quick):
                    time.sleep(int(ms) / 1000)
            return True
        quick = os.path.join(self.directory, "quick")
        self.relay(connection, port, answers)

    def cut(self, connection, _, count, port):
        left = int(count)

        def answers(data):
            nonlocal left
            connection.sendall(data[:left])
            left -= len(data)
            return left > 0
        self.relay(connection, port, answers)

    def corrupt(self, connection, _, count, port):
        left = int(count)

        def answers(data):
            nonlocal left
            if 0 <= left < len(data):
                data = data[:left] + bytes([data[left] ^ 0xff]) + \
                    data[left + 1:]
            left -= len(data)
            connection.sendall(data)
            return True
        self.relay(connection, port, answers)

    def redis(self, connection, heard, cert, key, data, then=""):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        with context.wrap_socket(connection, server_side=True,
                                 suppress_ragged_eofs=False) as secured:
            secured.recv(65536)
            *times, data = data.split("*")
            secured.sendall(bytes.fromhex(data) * int(times[0] if times else 1))
            if then == "":
                return None
            self.silent(secured, heard)
            return "goodbye"

    # --- all of them

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        heard, end = bytearray(), None
        try:
            end = self.treat(connection, heard, *self.arguments)
        except OSError:
            pass
        self.log.write((end or describe(bytes(heard))) + "\n")
        self.log.flush()
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()

    def run(self):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        port = os.path.join(self.directory, "port")
        with open(port + ".new", "w", encoding="ascii") as file:
            print(listener.getsockname()[1], file=file)
        os.rename(port + ".new", port)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.serve, args=(connection,),
                             daemon=True).start()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Peer(*sys.argv[1:]).run()
