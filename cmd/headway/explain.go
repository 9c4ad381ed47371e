package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
)

// explain reads exchanges and writes what each means, one JSON object a line. It
// writes nothing if one of them cannot be read.
func explain(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("explain", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it in one line
	forPerson := flags.Bool("text", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return errors.New("takes no arguments: the exchange comes on standard input")
	}
	exchanges, err := readExchanges(in)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for i, x := range exchanges {
		m := x.meaning()
		switch {
		case !*forPerson:
			err = lines.Encode(m)
		case i > 0:
			_, err = fmt.Fprintf(out, "\n%s", m.text())
		default:
			_, err = io.WriteString(out, m.text())
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errWrite, err)
		}
	}
	return nil
}
