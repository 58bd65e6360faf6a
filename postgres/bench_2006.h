/*
 * bench_2006.h: how PostgreSQL 8.1 said the same, for the bench alone (-DKYMO_BENCH_2006): three datagrams a command, its text, what
 * its transaction did, and that the backend is idle, to a process that waits for them. Nobody counts those that are lost.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KYMO_BENCH_2006_H
#define KYMO_BENCH_2006_H

#include <arpa/inet.h>
#include <sys/socket.h>

static int bench_2006_socket = -1;

/* Sends to 127.0.0.1, to the port in $KYMO_BENCH_PORT; backends inherit the socket. */
static void bench_2006_open(void) {
    const char *const port = getenv("KYMO_BENCH_PORT");
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (port == NULL)
        return;
    address.sin_port = htons((uint16_t)atoi(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bench_2006_socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bench_2006_socket >= 0 && connect(bench_2006_socket, (struct sockaddr *)&address, sizeof address) != 0) {
        close(bench_2006_socket);
        bench_2006_socket = -1;
    }
}

/* A header of 16 bytes, as then, and what follows it. */
static void bench_2006_send(int type, const void *body, size_t length) {
    struct {
        int type, length, backend, pid;
        char body[984];
    } message = {type, 0, 0, MyProcPid, {0}};
    if (bench_2006_socket < 0)
        return;
    if (length > sizeof message.body)
        length = sizeof message.body;
    message.length = (int)(16 + length);
    memcpy(message.body, body, length);
    while (send(bench_2006_socket, &message, 16 + length, 0) < 0 && errno == EINTR) {
    }
}

/* The database, and transactions that were committed and rolled back. */
static void bench_2006_end(void) {
    const int transaction[4] = {0, 1, 0, 0};
    bench_2006_send(2, transaction, sizeof transaction);
    bench_2006_send(1, "<IDLE>", 7);
}

#define BENCH_2006_OPEN() bench_2006_open()
#define BENCH_2006_BEGIN(text, length) bench_2006_send(1, text, length)
#define BENCH_2006_END() bench_2006_end()

#endif
