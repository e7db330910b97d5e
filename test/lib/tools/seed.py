#!/usr/bin/env python3
"""Sentinels, or nodes of a cluster, that say what they are told to.

    seed.py DIR COUNT [CERT KEY]

The i-th one (from 0) listens on a port of 127.0.0.1 whose number is in
DIR/i.port, for TLS where these files are given. What it says is in DIR/i.says (replace that file, don't write to
it), a line for each command:

    WORD REPLY      to a command that begins with WORD, in Redis' protocol, with
                    backslashes as Python has them; nothing where REPLY is empty
    WORD~TEXT REPLY to one that contains TEXT, too
    * REPLY         to any other; +OK\\r\\n where there is no such line

What it has been asked is in DIR/i.log, a line a command. DIR/ready exists once
all are listening.
"""
import os
import sys

if len(sys.argv) == 3:
    sys.modules["ssl"] = None  # asyncio would load it: half of what a start costs
# pylint: disable=wrong-import-position
import asyncio  # noqa: E402


def make_context(cert=None, key=None):
    if cert is None:
        return None
    import ssl  # pylint: disable=import-outside-toplevel

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


class Seed:
    def __init__(self, directory, index):
        self.path = os.path.join(directory, str(index))
        self.file = open(self.path + ".log", "a", encoding="ascii")

    def reply_to(self, words):
        word, rest = words[0].upper(), b" ".join(words[1:])
        replies = {"*": "+OK\\r\\n"}
        try:
            with open(self.path + ".says", encoding="ascii") as file:
                for line in file:
                    command, _, reply = line.rstrip("\n").partition(" ")
                    command, _, text = command.partition("~")
                    if text.encode() in rest:
                        replies[command] = reply
        except FileNotFoundError:
            pass
        reply = replies.get(word.decode("latin-1"), replies["*"])
        return reply.encode().decode("unicode_escape").encode("latin-1")

    async def talk(self, reader, writer):
        try:
            while line := await reader.readline():
                words = []
                for _ in range(int(line[1:])):
                    length = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(length + 2))[:-2])
                print(ascii(b" ".join(words)), file=self.file, flush=True)
                writer.write(self.reply_to(words))
                await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass
        writer.close()

    async def serve(self, context):
        server = await asyncio.start_server(self.talk, "127.0.0.1", 0, ssl=context)
        with open(self.path + ".port", "w", encoding="ascii") as file:
            print(server.sockets[0].getsockname()[1], file=file)
        return server


async def main(directory, count, *files):
    context = make_context(*files)
    servers = [await Seed(directory, i).serve(context) for i in range(count)]
    with open(os.path.join(directory, "ready"), "w", encoding="ascii"):
        pass
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
