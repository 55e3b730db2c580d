package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// A server says how a machine asks it for an identity and where the certificates are in its answer.
type server interface {
	// request is made beforehand and costs nothing in the measured time.
	request(m *machine, secret string) ([]byte, error)
	status() int
	// chain is PEM: the leaf, then its issuers.
	chain(body []byte) (string, error)
}

func newServer(o *order) (server, error) {
	switch o.Server {
	case "muster":
		return &muster{host: o.Address}, nil
	case "step-ca":
		key, err := o.Provisioner.key()
		return &stepCA{host: o.Address, provisioner: o.Provisioner, key: key}, err
	case "vault":
		return &vault{host: o.Address, path: o.Path, token: o.Token}, nil
	}
	return nil, fmt.Errorf("unknown server %q", o.Server)
}

type muster struct{ host string }

func (s *muster) request(m *machine, secret string) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"method": "token", "enrollment_token": secret, "csr": m.csr})
	return post(s.host, "/v1/enroll", "", body), err
}

func (s *muster) status() int { return 200 }

func (s *muster) chain(body []byte) (string, error) {
	var answer struct {
		Chain string `json:"certificate_chain"`
	}
	err := json.Unmarshal(body, &answer)
	return answer.Chain, err
}

// A provisioner of step-ca of the kind JWK: its key signs a token for each request.
type provisioner struct {
	Name     string `json:"name"`
	KeyID    string `json:"kid"`
	Audience string `json:"audience"`
	// The private part, base64url.
	D string `json:"d"`
}

func (p *provisioner) key() (*ecdsa.PrivateKey, error) {
	if p == nil {
		return nil, fmt.Errorf("no provisioner was given")
	}
	d, err := base64.RawURLEncoding.DecodeString(p.D)
	if err != nil {
		return nil, err
	}
	return ecdsa.ParseRawPrivateKey(elliptic.P256(), d)
}

type stepCA struct {
	host        string
	provisioner *provisioner
	key         *ecdsa.PrivateKey
}

func (s *stepCA) request(m *machine, _ string) ([]byte, error) {
	token, err := s.oneTimeToken(m.name)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]string{"csr": m.csr, "ott": token})
	return post(s.host, "/1.0/sign", "", body), err
}

func (s *stepCA) oneTimeToken(name string) (string, error) {
	id := make([]byte, 16)
	rand.Read(id)
	now := time.Now()
	head, _ := json.Marshal(map[string]string{"alg": "ES256", "kid": s.provisioner.KeyID, "typ": "JWT"})
	claims, _ := json.Marshal(map[string]any{
		"iss": s.provisioner.Name, "aud": s.provisioner.Audience, "sub": name, "sans": []string{name},
		"jti": hex.EncodeToString(id), "iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	signed := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(claims)
	digest := sha256.Sum256([]byte(signed))
	r, t, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(append(padded(r), padded(t)...)), nil
}

func padded(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

func (s *stepCA) status() int { return 201 }

func (s *stepCA) chain(body []byte) (string, error) {
	var answer struct {
		Chain []string `json:"certChain"`
	}
	err := json.Unmarshal(body, &answer)
	return strings.Join(answer.Chain, "\n"), err
}

type vault struct{ host, path, token string }

func (s *vault) request(m *machine, _ string) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"csr": m.csr, "common_name": m.name})
	return post(s.host, s.path, "X-Vault-Token: "+s.token+"\r\n", body), err
}

func (s *vault) status() int { return 200 }

func (s *vault) chain(body []byte) (string, error) {
	var answer struct {
		Data struct {
			Certificate string   `json:"certificate"`
			Chain       []string `json:"ca_chain"`
		} `json:"data"`
	}
	err := json.Unmarshal(body, &answer)
	return strings.Join(append([]string{answer.Data.Certificate}, answer.Data.Chain...), "\n"), err
}
