#!/usr/bin/env python3
"""A server that never answers: how many bytes its first client has sent until it hung up.

    silent.py SOCKET
"""
import os
import socket
import sys

server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1] + ".new")
server.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
client = server.accept()[0]
COUNT = 0
while piece := client.recv(65536):
    COUNT += len(piece)
print(COUNT)
