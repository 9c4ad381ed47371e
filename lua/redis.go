package lua

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"
)

//go:embed take.lua
var takeSource string

var takeScript = redis.NewScript(takeSource)

// Processor sends one command. Every client of go-redis is one.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// once is a command that go-redis must not send again when its reply is lost:
// an admission is charged at most once.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run calls the script by its hash and, when Redis does not have it, with its
// source: the one case in which it is certain that nothing ran. It never uses
// the SCRIPT command, which some proxies and access lists forbid.
func run(ctx context.Context, rdb Processor, script *redis.Script, source string, keys []string, args ...any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", script.Hash(), len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	all = append(all, args...)
	cmd := redis.NewCmd(ctx, all...)
	err := rdb.Process(ctx, once{cmd})
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		again := append([]any{"eval", source}, all[2:]...)
		cmd = redis.NewCmd(ctx, again...)
		_ = rdb.Process(ctx, once{cmd}) // the error is kept in cmd
	}
	return cmd
}

// Decide runs take.lua on one batch and returns an answer for each operation,
// in order. An error means that the fate of the batch is unknown.
func Decide(ctx context.Context, rdb Processor, b Batch) ([]Answer, error) {
	var e encoder
	for i := range b.Ops {
		e.op(&b.Ops[i])
	}
	head := appendFloats(nil, float64(b.Now), float64(b.Lead), float64(b.Lease), float64(len(b.Ops)))
	reply, err := run(ctx, rdb, takeScript, takeSource, e.keys, head, e.buf).Text()
	if err != nil {
		return nil, fmt.Errorf("lua: take: %w", err)
	}
	return decode(reply, b.Ops)
}

// encoder packs operations as take.lua reads them, and gathers their keys.
type encoder struct {
	keys  []string
	index map[string]int // only once there are many keys
	buf   []byte
}

// key returns the index of the key in KEYS, as Lua counts.
func (e *encoder) key(name string) float64 {
	const few = 16
	if e.index == nil {
		for i, k := range e.keys {
			if k == name {
				return float64(i + 1)
			}
		}
		if len(e.keys) == few {
			e.index = make(map[string]int)
			for i, k := range e.keys {
				e.index[k] = i + 1
			}
		}
	} else if i, ok := e.index[name]; ok {
		return float64(i)
	}
	e.keys = append(e.keys, name)
	if e.index != nil {
		e.index[name] = len(e.keys)
	}
	return float64(len(e.keys))
}

func (e *encoder) op(o *Op) {
	k := e.key(o.Key)
	m, l := k, k
	if o.Model != "" {
		m = e.key(o.Model)
	}
	if o.Line != "" {
		l = e.key(o.Line)
	}
	e.buf = appendFloats(e.buf, float64(o.Kind), k, m, l, float64(len(o.Rows)))
	var a [8]float64
	switch o.Kind {
	case Take, Ask, Leave:
		a = [8]float64{o.Share, float64(o.Patience), float64(o.ID), float64(o.ModelTag), float64(o.KeyRows)}
	case Adjust:
		a = [8]float64{float64(o.Guessed.Input), float64(o.Took.Input), float64(o.At), float64(o.Guessed.Output), float64(o.Took.Output)}
	case Charge, Heed:
		a = [8]float64{1: float64(o.Reset), 2: float64(o.At), 3: float64(o.Mine)}
	default:
		first := 0.0
		if o.First {
			first = 1
		}
		a = [8]float64{e.key(o.On), float64(o.Length), float64(o.Longest), float64(o.Calm), first, float64(o.Gen), float64(o.Rule), float64(o.Why)}
	}
	e.buf = appendFloats(e.buf, a[:]...)
	for i := range o.Rows {
		r := &o.Rows[i]
		e.buf = appendFloats(e.buf, e.key(r.Tape), float64(r.Tag), float64(r.Window), float64(r.Ceiling),
			float64(r.Amount), float64(r.Burst), float64(r.Cost), float64(r.Margin))
		if r.Burst < 0 {
			e.buf = appendFloats(e.buf, float64(r.Zone.Offset), float64(r.Zone.Change), float64(r.Zone.Next))
		}
	}
}

func appendFloats(b []byte, v ...float64) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// decode reads six doubles for each operation and, behind one that lets a call
// go, two for each of its rows.
func decode(reply string, ops []Op) ([]Answer, error) {
	out := make([]Answer, len(ops))
	for i := range ops {
		var v [6]int64
		if err := take(&reply, v[:]); err != nil {
			return nil, fmt.Errorf("lua: take: answer %d of %d: %w", i+1, len(ops), err)
		}
		a := Answer{Status: Status(v[0]), Wait: v[1], At: v[2], KeyGen: v[3], ModelGen: v[4], By: v[5]}
		if (ops[i].Kind == Take || ops[i].Kind == Ask) && a.Status == Go {
			a.Left = make([]Left, len(ops[i].Rows))
			for j := range a.Left {
				if err := take(&reply, v[:2]); err != nil {
					return nil, fmt.Errorf("lua: take: rows of answer %d of %d: %w", i+1, len(ops), err)
				}
				a.Left[j] = Left{v[0], v[1]}
			}
		}
		out[i] = a
	}
	if reply != "" {
		return nil, fmt.Errorf("lua: take: reply has %d bytes too many", len(reply))
	}
	return out, nil
}

// take cuts whole numbers off the beginning of a reply.
func take(reply *string, into []int64) error {
	for j := range into {
		if len(*reply) < 8 {
			return errors.New("the reply is too short")
		}
		x := math.Float64frombits(binary.LittleEndian.Uint64([]byte((*reply)[:8])))
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return fmt.Errorf("field %d is not a whole number", j+1)
		}
		into[j], *reply = int64(x), (*reply)[8:]
	}
	return nil
}
