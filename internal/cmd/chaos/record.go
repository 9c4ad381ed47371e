package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// outcome is how a call ended.
type outcome int

const (
	admitted outcome = iota
	refused          // by the budget
	closed           // out for an outage
	failed           // any other error, which none may be
)

// called is one call as its caller saw it.
type called struct {
	host  int
	lane  string
	began time.Time
	took  time.Duration // of store time
	late  time.Duration // from the moment that it was charged at until the vendor had answered it
	known bool          // its limiter knew of an outage when it began
	how   outcome
	err   error
}

// told is a limiter's word that the store is lost, or back.
type told struct {
	host int
	kind throttle.EventKind
	at   time.Time
	err  error
}

// record is what happened. It is a hook of every host's client as well, and
// counts what commands met.
type record struct {
	mu      sync.Mutex
	calls   []called
	events  []told
	down    [hosts]bool
	forgot  []time.Time    // when Redis lost what it had counted, though it served on
	met     map[string]int // first words of replies that are errors; "no reply" for everything else
	unknown int64          // units whose fate their limiter does not know
}

func (r *record) add(c called) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

func (r *record) event(host int, e throttle.Event) {
	if e.Kind != throttle.StoreLost && e.Kind != throttle.StoreBack {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[host] = e.Kind == throttle.StoreLost
	r.events = append(r.events, told{host, e.Kind, time.Now(), e.Err})
}

func (r *record) known(host int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down[host]
}

// out reports whether a limiter knows of an outage.
func (r *record) out() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.down[:], true)
}

// forget notes that Redis has lost its counts.
func (r *record) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgot = append(r.forgot, time.Now())
}

// DialHook leaves dialing alone.
func (r *record) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessPipelineHook leaves pipelines alone; limiters use none.
func (r *record) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook counts what commands met, and how many units have an unknown fate.
func (r *record) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil {
			r.mu.Lock()
			r.note(err)
			if !redis.HasErrorPrefix(err, "NOSCRIPT") {
				r.unknown += units(cmd)
			}
			r.mu.Unlock()
		}
		return err
	}
}

// note counts an error by its first word. r.mu is held.
func (r *record) note(err error) {
	word := "no reply"
	if reply := redis.Error(nil); errors.As(err, &reply) {
		word, _, _ = strings.Cut(reply.Error(), " ")
	}
	if r.met == nil {
		r.met = map[string]int{}
	}
	r.met[word]++
}

// units is how much a call of the admission script would charge: the sum of its
// operations' costs, as package lua packs them. A call that asks costs one, what
// was spent alone is told in one operation.
func units(cmd redis.Cmder) (n int64) {
	args := cmd.Args()
	if len(args) < 3 {
		return 0
	}
	keys, ok := args[2].(int)
	if !ok || len(args) != 3+keys+2 {
		return 0 // the script of the announcements
	}
	packed, ok := args[4+keys].([]byte)
	if !ok {
		return 0
	}
	v := make([]float64, len(packed)/8)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(packed[i*8:]))
	}
	const op, row, zone = 5 + 8, 8, 3 // numbers of an operation, of a row, and of a row with a fixed window
	for len(v) >= op {
		rows, most := int(v[4]), 0.0
		for v = v[op:]; rows > 0 && len(v) >= row; rows-- {
			most = max(most, math.Abs(v[6]))
			width := row
			if v[5] < 0 {
				width += zone
			}
			v = v[min(width, len(v)):]
		}
		n += int64(most)
	}
	return n
}

// nodeHook counts what the nodes of a cluster reply, before their client follows it.
type nodeHook struct{ *record }

// ProcessHook counts, and nothing else: fates are counted above, once.
func (n nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")) {
			n.mu.Lock()
			n.note(err)
			n.mu.Unlock()
		}
		return err
	}
}

// ProcessPipelineHook counts what follows an ASK, which is a pipeline.
func (n nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 2 && cmds[0].Name() == "asking" {
			n.mu.Lock()
			if n.met == nil {
				n.met = map[string]int{}
			}
			n.met["ASKING"]++
			n.mu.Unlock()
		}
		return next(ctx, cmds)
	}
}
