package sdktest

import (
	"encoding/json"
	"os"
	"testing"
)

// RowsEnv names the environment variable with the path of the file that gets
// the rows. Empty keeps them to the test.
const RowsEnv = "SDKTABLE"

// Row is what was measured of one SDK: a row of the table.
type Row struct {
	SDK, Module string
	Version     string // empty: that of Module in the go.mod beside the test

	Call, Stream string
	Attempts     int    // of a refused call
	Lost         string // the time that the refused call took
	Reason       string // how the program learns why
	TooMany      string // what a vendor's 429 comes to
	Key          string // what a refused key comes to
}

// Record appends a row to the file that [RowsEnv] names, if it names one and
// the test has not failed.
func Record(t *testing.T, r Row) {
	t.Helper()
	path := os.Getenv(RowsEnv)
	if path == "" || t.Failed() {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}
