package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// wire is one connection that asks one thing at a time.
type wire struct {
	conn net.Conn
	id   int32
	out  []byte
	in   []byte
}

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("load"))

func dial(address string) *wire {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return &wire{conn: conn}
}

func (w *wire) close() { w.conn.Close() }

func (w *wire) call(request kmsg.Request) (kmsg.Response, error) {
	w.id++
	w.out = formatter.AppendRequest(w.out[:0], request, w.id)
	if _, err := w.conn.Write(w.out); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(w.conn, length[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(length[:]))
	if cap(w.in) < size {
		w.in = make([]byte, size)
	}
	w.in = w.in[:size]
	if _, err := io.ReadFull(w.conn, w.in); err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	header := 4
	if response.IsFlexible() {
		header++ // No broker sends tags here.
	}
	// The response keeps slices of what it is read from.
	body := append([]byte(nil), w.in[header:]...)
	return response, response.ReadFrom(body)
}

func (w *wire) must(request kmsg.Request) kmsg.Response {
	response, err := w.call(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return response
}
