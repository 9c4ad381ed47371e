package lua

import (
	"os"
	"testing"

	"github.com/headway-go/headway/internal/redistest"
)

// server is the private Redis of this test binary.
var server *redistest.Server

func TestMain(m *testing.M) {
	os.Exit(redistest.Run(m, func(s *redistest.Server) { server = s }))
}
