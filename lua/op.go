// Package lua holds the scripts that decide in Redis, the Go that calls them,
// and the only place that spells a Redis key.
//
// An operation is described once, by [Op]; the memory store of package throttle
// carries out the same operations in Go and gives the same answers.
package lua

// Kind says what an operation does; see the table at the top of take.lua.
type Kind int

const (
	Take     Kind = iota + 1 // may this call go?
	Ask                      // a call in line asks again
	Leave                    // a call in line gives up
	Adjust                   // change what was charged at At by the rows' costs
	Hold                     // close the scope On
	Answered                 // the probe of the scope On got through
	Freed                    // the probe of the scope On learned nothing
	Resume                   // open the scope On
	Look                     // read the scope On, and at most one row
	Charge                   // charge the rows at At, or now if that is later, without asking
	Heed                     // the rows' costs went to others, says the vendor
)

// Op is one operation. Times are microseconds, of the store's clock where they
// are moments. The three names are keys made by [Names].
type Op struct {
	Kind     Kind
	Key      string // scope of the key
	Model    string // scope of the model
	Line     string
	On       string // Hold, Answered, Freed, Resume, Look: the scope they are about
	Rows     []Row
	Share    float64 // Take, Ask
	ModelTag int64   // Take, Ask: the model's scope as a number, see [Tag]
	KeyRows  int     // Take, Ask: how many of the rows, the first ones, are limits of the key
	Patience int64   // Take, Ask: the longest wait
	ID       int64   // Ask, Leave: the place in line
	At       int64   // Adjust, Heed: when it was charged; Charge: when to charge
	Gen      int64   // Hold, Answered, Freed: the generation the call was admitted in
	Guessed  Parts   // Adjust: what a call's tokens were guessed at; zero is not to be learned from
	Took     Parts   // Adjust: what they were
	Reset    int64   // Heed: the time to the vendor's own reset, 0 if unknown
	Mine     int64   // Heed: what this fleet had used before that call
	Length   int64   // Hold
	Longest  int64   // Hold
	Calm     int64   // Hold
	First    bool    // Hold
	Rule     int64   // Hold
	Why      int64   // Hold
}

// Parts are the tokens of a call.
type Parts struct{ Input, Output int64 }

// Row is one limit as one call sees it.
type Row struct {
	Tape    string // key of the tape
	Tag     int64  // the tape's name as a number, for the line
	Window  int64
	Ceiling int64 // what the call's lane may fill
	Amount  int64
	Burst   int64 // -1 Fixed, 0 Sliding, else Bucket
	Cost    int64 // Adjust: the signed change
	Margin  int64 // what of Window is not the vendor's; Fixed: kept free at both ends
	Zone    Zone  // Fixed only
}

// Zone is the clock that a fixed window follows: its offset from UTC, the
// moment that changes, the offset from then on.
type Zone struct{ Offset, Change, Next int64 }

// Status is how an operation ended.
type Status int

const (
	Refused Status = iota // Take, Ask: no. Others: nothing to do
	Go                    // Take, Ask: go after Wait. Others: done
	InLine                // Take, Ask: stands in line under the id At. Hold: the pause grew
)

// What By says when it is not the number of a row, counted from 1.
const (
	ByModel = -1
	ByKey   = -2
)

// Whose probe a call is: bits of By in an answer with status Go.
const (
	ProbeKey   = 1
	ProbeModel = 2
)

// Answer is the reply to one operation.
type Answer struct {
	Status   Status
	Wait     int64
	At       int64
	KeyGen   int64
	ModelGen int64
	By       int64
	Left     []Left // Take, Ask with status Go: of each row
}

// Left is what a call that goes leaves of a limit: what this fleet has not used,
// and what others have.
type Left struct{ Units, Others int64 }

// Lately returns, from the answer to an Adjust, what input and output take of
// their guesses, in millionths; 0 is unknown.
func (a Answer) Lately() Parts { return Parts{a.Wait, a.At} }

// Batch is what one call of the script decides.
type Batch struct {
	Now   int64 // microseconds; 0 is the store's clock, anything else is for tests
	Lead  int64 // how early a call may be granted
	Lease int64 // of a probe
	Ops   []Op
}
