package main

import (
	"encoding/binary"
	"io"
)

// frame masks with zeros, which leaves the bytes as they are. Bodies here are shorter than 65,536 bytes.
func frame(kind byte, body []byte) []byte {
	out := []byte{kind}
	if len(body) < 126 {
		out = append(out, 0x80|byte(len(body)))
	} else {
		out = append(out, 0x80|126, byte(len(body)>>8), byte(len(body)))
	}
	return append(append(out, 0, 0, 0, 0), body...)
}

const (
	closing = 0x8
	ping    = 0x9
	pong    = 0x8a
)

func (c *conn) answerPings() {
	for {
		kind, body, err := c.readFrame()
		if err != nil || kind == closing {
			c.close()
			return
		}
		if kind == ping {
			c.tls.Write(frame(pong, body))
		}
	}
}

func (c *conn) readFrame() (byte, []byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(c.reader, head[:2]); err != nil {
		return 0, nil, err
	}
	kind, length := head[0]&0xf, int64(head[1]&0x7f)
	switch length {
	case 126:
		if _, err := io.ReadFull(c.reader, head[:2]); err != nil {
			return 0, nil, err
		}
		length = int64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		if _, err := io.ReadFull(c.reader, head[:8]); err != nil {
			return 0, nil, err
		}
		length = int64(binary.BigEndian.Uint64(head[:8]))
	}
	body := make([]byte, length)
	_, err := io.ReadFull(c.reader, body)
	return kind, body, err
}
