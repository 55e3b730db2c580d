package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// A fleet is all machines of this process, and the server they call.
type fleet struct {
	server  server
	address string
	trust   *tls.Config
	// The roots its certificates have to lead to: those that its server certificate leads to.
	roots    *x509.CertPool
	machines []*machine
}

type machine struct {
	name string
	key  *ecdsa.PrivateKey
	// PEM.
	csr     string
	request []byte
	answer  []byte
	// What only a plane gives: the node's own name, and its certificate in its connections.
	node    string
	config  *tls.Config
	channel *conn
}

func (f *fleet) connect(o *order) error {
	trust, err := trusting(o.Roots, o.Name)
	if err != nil {
		return err
	}
	server, err := newServer(o)
	if err != nil {
		return err
	}
	*f = fleet{server: server, address: o.Address, trust: trust, roots: trust.RootCAs}
	return nil
}

func (f *fleet) addMachines(o *order) error {
	first := len(f.machines)
	f.machines = append(f.machines, make([]*machine, len(o.Names))...)
	failures := &failures{}
	next := atomic.Int64{}
	inParallel(runtime.NumCPU(), func() {
		for {
			at := int(next.Add(1)) - 1
			if at >= len(o.Names) {
				return
			}
			secret := ""
			if at < len(o.Secrets) {
				secret = o.Secrets[at]
			}
			made, err := f.newMachine(o.Names[at], secret)
			failures.add(err)
			f.machines[first+at] = made
		}
	})
	if failures.count > 0 {
		return fmt.Errorf("%s", failures.kept[0])
	}
	return nil
}

func (f *fleet) newMachine(name, secret string) (*machine, error) {
	key, csr, err := newRequest(name)
	if err != nil {
		return nil, err
	}
	m := &machine{name: name, key: key, csr: csr}
	m.request, err = f.server.request(m, secret)
	return m, err
}

func newRequest(name string) (*ecdsa.PrivateKey, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
	// Agents ask for no alternative names; who asks a step-ca or a Vault itself has to.
	if strings.Contains(name, ".") {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), err
}

// shakeHands opens a connection that only proves who the server is.
func (f *fleet) shakeHands(_ *worker, _ int) error {
	c, err := dial(f.address, f.trust)
	if err != nil {
		return err
	}
	c.close()
	return nil
}

func (f *fleet) enrolling(keep bool) func(*worker, int) error {
	return func(w *worker, at int) error {
		m := f.machines[at]
		c := w.kept
		if c == nil {
			var err error
			if c, err = dial(f.address, f.trust); err != nil {
				return err
			}
		}
		answer, err := c.ask(m.request)
		if keep && err == nil {
			w.kept = c
		} else {
			w.kept = nil
			c.close()
		}
		if err != nil {
			return err
		}
		if err := answer.must(f.server.status()); err != nil {
			return err
		}
		m.answer = answer.body
		return nil
	}
}

// checkIdentity reads what a machine was given: a certificate for its key, from the authority it trusts.
func (f *fleet) checkIdentity(_ *worker, at int) error {
	m := f.machines[at]
	if m.answer == nil {
		return fmt.Errorf("%s: no answer to check", m.name)
	}
	text, err := f.server.chain(m.answer)
	if err != nil {
		return err
	}
	chain, err := parseChain([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	leaf, issuers := chain[0], x509.NewCertPool()
	if public, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(&m.key.PublicKey) {
		return fmt.Errorf("%s: the certificate is for another key", m.name)
	}
	for _, issuer := range chain[1:] {
		issuers.AddCert(issuer)
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: f.roots, Intermediates: issuers, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.config = f.trust.Clone()
	own := tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: m.key, Leaf: leaf}
	// The leaf alone, as an agent shows it. Go would send it only to a server that names its direct issuer.
	m.config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	var plane struct {
		Node string `json:"node_id"`
	}
	if err := json.Unmarshal(m.answer, &plane); err != nil {
		return err
	}
	m.node, m.answer, m.request = plane.Node, nil, nil
	return nil
}

func parseChain(text []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		chain = append(chain, one)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("no certificate in %q", bytes.TrimSpace(text))
	}
	return chain, nil
}

// confirm leaves the connection open: the channel opens on it.
func (f *fleet) confirm(_ *worker, at int) error {
	m := f.machines[at]
	if err := f.open(m); err != nil {
		return err
	}
	answer, err := m.channel.ask(post(f.address, "/v1/nodes/"+m.node+"/confirm", "", []byte("{}")))
	if err != nil {
		return err
	}
	return answer.must(200)
}

// renew asks for another certificate on a new connection, and does not use it.
func (f *fleet) renew(_ *worker, at int) error {
	m := f.machines[at]
	_, csr, err := newRequest(m.name)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"csr": csr})
	if err != nil {
		return err
	}
	c, err := dial(f.address, m.config)
	if err != nil {
		return err
	}
	defer c.close()
	answer, err := c.ask(post(f.address, "/v1/nodes/"+m.node+"/renew", "", body))
	if err != nil {
		return err
	}
	return answer.must(200)
}

func (f *fleet) open(m *machine) error {
	if m.config == nil {
		return fmt.Errorf("%s has no identity", m.name)
	}
	if m.channel != nil {
		return nil
	}
	c, err := dial(f.address, m.config)
	m.channel = c
	return err
}

// openChannel takes the connection of a confirm, or a new one: the first use of a certificate may be the channel itself.
func (f *fleet) openChannel(_ *worker, at int) error {
	m := f.machines[at]
	if err := f.open(m); err != nil {
		return err
	}
	answer, err := m.channel.ask([]byte("GET /v1/nodes/" + m.node + "/channel HTTP/1.1\r\nHost: " + f.address +
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: muster.v1\r\n\r\n"))
	if err != nil {
		return err
	}
	if err := answer.must(101); err != nil {
		return err
	}
	return m.attend()
}

// hello is what an agent says first.
const hello = `{"stream":0,"seq":1,"ack":0,"type":"hello","body":{"agent_version":"bench","capabilities":[],"config_revision":0,"trust_revision":0}}`

// attend answers pings until the channel ends.
func (m *machine) attend() error {
	c := m.channel
	if _, err := c.tls.Write(frame(0x81, []byte(hello))); err != nil {
		return err
	}
	c.tls.SetDeadline(time.Time{})
	go c.answerPings()
	return nil
}

func (f *fleet) close(from, to int) error {
	for _, m := range f.machines[from:to] {
		if m.channel != nil {
			m.channel.close()
			m.channel = nil
		}
	}
	return nil
}
