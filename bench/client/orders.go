package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// An order of the benchmark that drives this process.
type order struct {
	// connect | machines | handshakes | enroll | check | confirm | renew | channel | close
	Do string `json:"do"`

	// connect: the server, and how it gives identities.
	Server  string `json:"server"`
	Address string `json:"address"`
	Name    string `json:"name"`
	// PEM.
	Roots string `json:"roots"`
	// Vault: the token every request carries, and the path that signs.
	Token string `json:"token"`
	Path  string `json:"path"`
	// step-ca: what its one-time tokens are signed with.
	Provisioner *provisioner `json:"provisioner"`

	// machines: as many as these names are added, each with a key, a request and a token.
	Names []string `json:"names"`
	// A plane's tokens, one a name.
	Secrets []string `json:"secrets"`

	// handshakes: so many; enroll, check, confirm, renew, channel: the machines from, up to and without to.
	Count int `json:"count"`
	From  int `json:"from"`
	To    int `json:"to"`
	// At the same time.
	AtOnce int `json:"at_once"`
	// Every worker keeps its connection, instead of a new one for each request.
	Keep bool `json:"keep"`
}

type report struct {
	Done     int      `json:"done"`
	Ms       float64  `json:"ms"`
	Failures []string `json:"failures"`
}

// The most failures that are worth reading.
const failuresKept = 5

func (f *fleet) obey(o *order) (*report, error) {
	switch o.Do {
	case "connect":
		return &report{}, f.connect(o)
	case "machines":
		return &report{Done: len(o.Names)}, f.addMachines(o)
	case "handshakes":
		return measure(o.AtOnce, 0, o.Count, f.shakeHands)
	case "enroll":
		return measure(o.AtOnce, o.From, o.To, f.enrolling(o.Keep))
	case "check":
		return measure(runtime.NumCPU(), o.From, o.To, f.checkIdentity)
	case "confirm":
		return measure(o.AtOnce, o.From, o.To, f.confirm)
	case "renew":
		return measure(o.AtOnce, o.From, o.To, f.renew)
	case "channel":
		return measure(o.AtOnce, o.From, o.To, f.openChannel)
	case "close":
		return &report{}, f.close(o.From, o.To)
	}
	return nil, fmt.Errorf("unknown order")
}

// A worker does one thing at a time, and may keep a connection between them.
type worker struct {
	kept *conn
}

// measure runs one step for each index, so many at once.
func measure(atOnce, from, to int, step func(*worker, int) error) (*report, error) {
	if atOnce < 1 || from < 0 || to < from {
		return nil, fmt.Errorf("a number is missing")
	}
	failures := &failures{}
	next := atomic.Int64{}
	next.Store(int64(from))
	started := time.Now()
	inParallel(atOnce, func() {
		w := &worker{}
		for {
			at := int(next.Add(1)) - 1
			if at >= to {
				break
			}
			failures.add(step(w, at))
		}
		if w.kept != nil {
			w.kept.close()
		}
	})
	ms := float64(time.Since(started).Microseconds()) / 1000
	return &report{Done: to - from - failures.count, Ms: ms, Failures: failures.kept}, nil
}

type failures struct {
	lock  sync.Mutex
	count int
	kept  []string
}

func (f *failures) add(err error) {
	if err == nil {
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.count++
	if len(f.kept) < failuresKept {
		f.kept = append(f.kept, err.Error())
	}
}

func inParallel(atOnce int, run func()) {
	var all sync.WaitGroup
	for range atOnce {
		all.Go(run)
	}
	all.Wait()
}
