// Command headway is the operator's view of a fleet.
//
//	headway explain [-text] <exchange.json
//
// Explain reads a recorded exchange with a vendor and says what Headway makes of
// it: whose key, which model, what the answer means, how long to wait, what was
// counted, and which rule decided. It asks neither the vendor nor a store, and
// never prints the credential.
//
// The exchange is a JSON object, or an array of them; other fields are ignored:
//
//	{
//	  "vendor":   "openai",
//	  "now":      "2026-03-02T10:00:00Z",
//	  "request":  {"method": "POST", "url": "https://api.openai.com/v1/chat/completions", "headers": {}, "body": {}},
//	  "response": {"status": 429, "headers": {}, "body": {}}
//	}
//
// Vendor is the name of a profile; without it, or if there is none of that name,
// the request chooses the profile as it does in the transport. Now is when the
// answer came, by default the present. A body that is an object or array stands
// for its JSON, a string for itself, null for none; it is never compressed.
//
// It exits with 0, with 2 for a wrong input or command line, which one line on
// standard error explains, and with 1 if the output cannot be written.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is one of the words that may follow "headway".
type command struct {
	name, args, does string
	run              func(args []string, in io.Reader, out io.Writer) error
}

func commands() []command {
	return []command{
		{"explain", "[-text] <exchange.json", "say what a recorded exchange with a vendor means", explain},
	}
}

// errWrite says that the input was fine, but the output could not be written.
var errWrite = errors.New("output")

// run is main without its process. It returns the exit code.
func run(args []string, in io.Reader, out, problems io.Writer) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		usage(out)
		return 0
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		err := c.run(args[1:], in, out)
		switch {
		case err == nil:
			return 0
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprintf(out, "usage: headway %s %s\n", c.name, c.args)
			return 0
		}
		fmt.Fprintf(problems, "headway %s: %s\n", c.name, oneLine(err.Error()))
		if errors.Is(err, errWrite) {
			return 1
		}
		return 2
	}
	fmt.Fprintf(problems, "headway: no command %q; \"headway\" lists them\n", args[0])
	return 2
}

// oneLine returns an error's text without what could end a line or steer a
// terminal: package flag quotes an argument as it is.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

func usage(out io.Writer) {
	fmt.Fprint(out, "usage: headway <command>\n\n")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %s %s\n        %s\n", c.name, c.args, c.does)
	}
}
