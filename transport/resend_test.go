package transport

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// The frames of HTTP/2 that the vendor below needs, see RFC 9113, section 6.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7

	ack, endStream, endHeaders = 1, 1, 4
)

// frames is a vendor that speaks just enough of HTTP/2 to turn a call away
// unprocessed. It takes the second one.
type frames struct {
	turnAway func(write func(kind, flags byte, stream uint32, payload ...byte), stream uint32)

	mu     sync.Mutex
	bodies []string // of the calls, in the order of their ends
	conns  []net.Conn
}

func (f *frames) serve(conn net.Conn) {
	f.mu.Lock()
	f.conns = append(f.conns, conn)
	f.mu.Unlock()
	write := func(kind, flags byte, stream uint32, payload ...byte) {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		head = binary.BigEndian.AppendUint32(append(head, flags), stream)
		conn.Write(append(head, payload...))
	}
	if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	write(frameSettings, 0, 0)
	bodies := map[uint32]string{}
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		word := binary.BigEndian.Uint32(head)
		payload := make([]byte, word>>8)
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		kind, flags, stream := byte(word), head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case (kind == frameSettings || kind == framePing) && flags&ack == 0:
			if kind == frameSettings {
				payload = nil
			}
			write(kind, ack, 0, payload...)
		case kind == frameData:
			bodies[stream] += string(payload)
		}
		if (kind != frameData && kind != frameHeaders) || flags&endStream == 0 {
			continue
		}
		f.mu.Lock()
		f.bodies = append(f.bodies, bodies[stream])
		first := len(f.bodies) == 1
		f.mu.Unlock()
		if first {
			f.turnAway(write, stream)
		} else {
			write(frameHeaders, endHeaders|endStream, stream, 0x88) // ":status: 200" in HPACK
		}
	}
}

// S06: net/http sends a call again that HTTP/2 turned away unprocessed. It does
// so below the wrapper, from GetBody, and the call is charged once.
func TestSentAgainBelow(t *testing.T) {
	const content = `{"model":"m","input":"hello"}`
	for _, tc := range []struct {
		name     string
		turnAway func(write func(kind, flags byte, stream uint32, payload ...byte), stream uint32)
		getBody  bool
	}{
		{"REFUSED_STREAM", func(write func(byte, byte, uint32, ...byte), stream uint32) { write(frameReset, 0, stream, 0, 0, 0, 7) }, true},
		{"GOAWAY", func(write func(byte, byte, uint32, ...byte), _ uint32) {
			write(frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		}, true},
		{"REFUSED_STREAM, no GetBody", func(write func(byte, byte, uint32, ...byte), stream uint32) { write(frameReset, 0, stream, 0, 0, 0, 7) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			leaks := noLeaks(t)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			vendor := &frames{turnAway: tc.turnAway}
			go func() {
				for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
					go vendor.serve(conn)
				}
			}()
			base := &http.Transport{Protocols: new(http.Protocols), ResponseHeaderTimeout: 10 * time.Second}
			base.Protocols.SetUnencryptedHTTP2(true)
			b := &book{}
			req := post(t, "http://"+listener.Addr().String(), content)
			if !tc.getBody {
				req.GetBody = nil
			}
			resp, err := (&Transport{Base: base, reserve: b.reserve, DefaultKeyID: "test"}).RoundTrip(req)
			if (err == nil) != tc.getBody {
				t.Fatalf("RoundTrip() error %v, want an answer %v", err, tc.getBody)
			}
			want := []string{content, content}[:1]
			if err == nil {
				resp.Body.Close()
				want = []string{content, content}
			}
			vendor.mu.Lock()
			defer vendor.mu.Unlock()
			if len(vendor.bodies) != len(want) || vendor.bodies[0] != content || vendor.bodies[len(want)-1] != content {
				t.Errorf("vendor got %q, want %q", vendor.bodies, want)
			}
			if h := b.last(t); len(b.holds) != 1 || h.cancels != 0 || len(h.reports) != 1 {
				t.Errorf("%d calls reserved, %d cancels, reports %v, want one call, charged", len(b.holds), h.cancels, h.reports)
			}
			base.CloseIdleConnections()
			listener.Close()
			for _, conn := range vendor.conns {
				conn.Close()
			}
			leaks()
		})
	}
}
