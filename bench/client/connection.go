package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A server that takes longer than this is taken for one that does not answer.
const patience = 60 * time.Second

// A conn speaks HTTP/1.1 by hand: net/http costs several times as much a request.
type conn struct {
	tls    *tls.Conn
	reader *bufio.Reader
}

func trusting(roots string, name string) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(roots)) {
		return nil, fmt.Errorf("the roots hold no certificate")
	}
	return &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}, nil
}

func dial(address string, config *tls.Config) (*conn, error) {
	raw, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	raw.SetDeadline(time.Now().Add(patience))
	secured := tls.Client(raw, config)
	if err := secured.Handshake(); err != nil {
		raw.Close()
		return nil, err
	}
	return &conn{tls: secured, reader: bufio.NewReaderSize(secured, 8<<10)}, nil
}

func (c *conn) close() { c.tls.Close() }

type reply struct {
	status int
	body   []byte
}

// ask sends one request and reads its answer.
func (c *conn) ask(request []byte) (*reply, error) {
	c.tls.SetDeadline(time.Now().Add(patience))
	if _, err := c.tls.Write(request); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		return &reply{status: response.StatusCode}, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return &reply{status: response.StatusCode, body: body}, err
}

func (r *reply) must(status int) error {
	if r.status == status {
		return nil
	}
	return fmt.Errorf("answered %d: %s", r.status, bytes.TrimSpace(r.body))
}

func post(host, path, headers string, body []byte) []byte {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, host, headers, len(body))
	return append([]byte(head), body...)
}
