// The load of benchmarks: machines that get an identity from a plane, from step-ca or from Vault. It is written in Go
// because a client in Node uses more CPU than the server it measures; one process of this leaves most of two cores to it.
//
// It reads one order a line from standard input and answers each with one line (orders.go). Whatever an order needs that is
// not to be measured (keys, requests, tokens) is made by the order before it, and the answers are checked by the one after it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// An order may carry ten thousand tokens.
const longestOrder = 64 << 20

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), longestOrder)
	answers := json.NewEncoder(os.Stdout)
	fleet := &fleet{}
	for lines.Scan() {
		var order order
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			fmt.Fprintln(os.Stderr, "client: an order cannot be read:", err)
			os.Exit(1)
		}
		report, err := fleet.obey(&order)
		if err != nil {
			fmt.Fprintf(os.Stderr, "client: %s: %v\n", order.Do, err)
			os.Exit(1)
		}
		if err := answers.Encode(report); err != nil {
			os.Exit(1)
		}
	}
}
