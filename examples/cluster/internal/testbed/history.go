package testbed

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// action is the kind of an operation.
type action string

const (
	create action = "create"
	update action = "update"
	remove action = "delete"
	get    action = "get"
)

// outcome is the result of an operation for the client.
type outcome string

const (
	done     outcome = "done"
	conflict outcome = "conflict"
	exists   outcome = "exists"
	absent   outcome = "absent"
	unknown  outcome = "unknown" // the operation takes effect at any time after the call, or never
)

// operation is one request for one object, and its answer.
type operation struct {
	client    int
	action    action
	key       string
	value     string // value to write
	expect    string // expected current value; empty for any
	outcome   outcome
	found     ConfigMap // the object that was read, or the written version
	call, ret int64
}

// list is a list that was read.
type list struct {
	version uint64
	epoch   string // label that was selected; empty for all objects
	items   map[string]ConfigMap
}

// history is what the clients and the watches of a load observed.
type history struct {
	before     State  // the state before the load
	base       uint64 // the version before the load
	operations []operation
	lists      []list
	watches    [][]Event // the events of each watch
}

// check compares a history with the events of the store after version base, and returns an error if no
// single store, which executes one operation at a time, explains both.
func (h *history) check(events []Event) error {
	for i, w := range h.watches {
		if err := compareWatch(w, events); err != nil {
			return fmt.Errorf("watch %d: %w", i, err)
		}
	}
	if err := h.checkWrites(events); err != nil {
		return err
	}
	if err := h.checkLists(events); err != nil {
		return err
	}
	return h.checkLinearizable(events)
}

// compareWatch checks that a watch delivered each event once and in order.
func compareWatch(got, want []Event) error {
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d events, want %d", len(got), len(want))
	}
	return nil
}

// checkWrites checks that each acknowledged write is among the events, and that each event belongs to a
// write.
func (h *history) checkWrites(events []Event) error {
	written, deleted, mayDelete := h.writes()
	live, found, gone := map[string]ConfigMap{}, map[string]bool{}, map[string]int{}
	for _, e := range events {
		now := e.Object.ConfigMap()
		before, existed := live[now.Name]
		if e.Type == "DELETED" {
			if !existed || before.Value != now.Value {
				return fmt.Errorf("%+v was deleted, but the object was %+v", now, before)
			}
			delete(live, now.Name)
			gone[now.Name]++
			continue
		}
		o, known := written[now.Value]
		switch {
		case !known || o.key != now.Name:
			return fmt.Errorf("event without a write: %+v", now)
		case found[now.Value]:
			return fmt.Errorf("two events for one write: %+v", now)
		case o.outcome != unknown && o.found.Version != now.Version:
			return fmt.Errorf("the write was answered with %+v, the event is %+v", o, now)
		case (e.Type == "MODIFIED") != existed || (e.Type == "ADDED") == existed:
			return fmt.Errorf("%s event of %+v, which existed: %v", e.Type, now, existed)
		}
		found[now.Value], live[now.Name] = true, now
	}
	for value, o := range written {
		if o.outcome != unknown && !found[value] {
			return fmt.Errorf("an acknowledged write was lost: %+v", o)
		}
	}
	for key, n := range deleted {
		if n > gone[key] || gone[key] > mayDelete[key] {
			return fmt.Errorf("%s: %d deletions acknowledged, %d with an unknown outcome, %d events", key, n, mayDelete[key]-n, gone[key])
		}
	}
	return nil
}

// writes returns the creates and updates that may have been executed, by value, and for each key the
// number of acknowledged deletions and of deletions that may have been executed.
func (h *history) writes() (written map[string]operation, deleted, mayDelete map[string]int) {
	written, deleted, mayDelete = map[string]operation{}, map[string]int{}, map[string]int{}
	for _, o := range h.operations {
		switch {
		case o.action == get || o.outcome != done && o.outcome != unknown:
		case o.action != remove:
			written[o.value] = o
		case o.outcome == done:
			deleted[o.key]++
			fallthrough
		default:
			mayDelete[o.key]++
		}
	}
	return written, deleted, mayDelete
}

// checkLists compares each list with the state after the events up to its version.
func (h *history) checkLists(events []Event) error {
	slices.SortFunc(h.lists, func(a, b list) int { return cmp.Compare(a.version, b.version) })
	epochs := map[string]map[string]ConfigMap{"": {}}
	maps.Copy(epochs[""], h.before.Objects)
	for _, l := range h.lists {
		for len(events) > 0 && events[0].Object.Version() <= l.version {
			apply(epochs, events[0])
			events = events[1:]
		}
		if l.version < h.base {
			continue // a state before the load, from a cache
		}
		if !maps.Equal(epochs[l.epoch], l.items) {
			return fmt.Errorf("list of version %d: %v, want %v", l.version, l.items, epochs[l.epoch])
		}
	}
	return nil
}

// apply applies an event to the objects of its epoch.
func apply(epochs map[string]map[string]ConfigMap, e Event) {
	m := e.Object.ConfigMap()
	for _, epoch := range []string{m.Epoch, ""} {
		if epochs[epoch] == nil {
			epochs[epoch] = map[string]ConfigMap{}
		}
		if epochs[epoch][m.Name] = m; e.Type == "DELETED" {
			delete(epochs[epoch], m.Name)
		}
	}
}

// checkLinearizable checks with porcupine that the operations on each object are linearizable. The
// events show whether a write without an answer took effect.
func (h *history) checkLinearizable(events []Event) error {
	versions := map[string]uint64{}
	for _, e := range events {
		if e.Type != "DELETED" {
			versions[e.Object.ConfigMap().Value] = e.Object.Version()
		}
	}
	keys := map[string][]porcupine.Operation{}
	for _, o := range h.operations {
		ret := o.ret
		if o.outcome == unknown {
			ret = math.MaxInt64
			version, happened := versions[o.value]
			switch {
			case happened:
				o.outcome, o.found.Version = done, version
			case o.action != remove:
				continue
			}
		}
		keys[o.key] = append(keys[o.key], porcupine.Operation{ClientId: o.client, Input: o, Call: o.call, Return: ret})
	}
	for key, operations := range keys {
		if result := porcupine.CheckOperationsTimeout(model, operations, time.Minute); result != porcupine.Ok {
			slices.SortFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
			var text strings.Builder
			for _, o := range operations {
				fmt.Fprintf(&text, "\n%+v", o.Input)
			}
			return fmt.Errorf("the operations on %s are not linearizable: %s%s", key, result, &text)
		}
	}
	return nil
}

// objectState is the state of one object: its value, empty if it does not exist, and its newest version
// so far.
type objectState struct {
	value   string
	version uint64
}

// model is the porcupine model of one object. A deletion with an unknown outcome takes effect only if
// it can: porcupine may order it after everything else.
var model = porcupine.Model{
	Init: func() any { return objectState{} },
	Step: func(s, input, _ any) (bool, any) {
		o := input.(operation)
		if o.action == get {
			return s.(objectState).read(o), s
		}
		return s.(objectState).write(o)
	},
}

func (s objectState) read(o operation) bool {
	if o.outcome == absent {
		return s.value == ""
	}
	return s == objectState{o.found.Value, o.found.Version}
}

func (s objectState) write(o operation) (bool, any) {
	there, met := s.value != "", o.expect == "" || o.expect == s.value
	switch o.outcome {
	case exists:
		return there, s
	case absent:
		return !there, s
	case conflict:
		return there && !met, s
	}
	takes := there && met
	switch o.action {
	case create:
		takes = !there
	case remove:
		if o.outcome == unknown && !takes {
			return true, s
		}
		return takes, objectState{version: s.version}
	}
	return takes && o.found.Version > s.version, objectState{o.value, o.found.Version}
}

// stream receives the events of consecutive watches, up to the fence.
type stream struct {
	fence  string  // name of the last object
	last   uint64  // the newest version received
	seen   []Event // events of the objects of the load
	fenced bool    // whether the fence was received
	err    error   // the first violation of the order of events
}

// take checks the order of versions and records events other than bookmarks. It returns false at the
// fence and after an error.
func (s *stream) take(e Event) bool {
	version := e.Object.Version()
	switch {
	case e.Type == "BOOKMARK" && version < s.last:
		s.err = fmt.Errorf("bookmark %d after %d", version, s.last)
	case e.Type == "BOOKMARK":
		s.last = version
	case e.Type == "ERROR" && e.Object.Code >= 500: // a watch may end with this error; the next one continues
	case e.Type == "ERROR":
		s.err = fmt.Errorf("the watch after %d ended: %d %s", s.last, e.Object.Code, e.Object.Message)
	case version <= s.last:
		s.err = fmt.Errorf("%s of %s at %d after %d", e.Type, e.Object.Metadata.Name, version, s.last)
	default:
		s.last = version
		s.fenced = e.Object.Metadata.Name == s.fence
		if !s.fenced && e.Object.Metadata.Labels["epoch"] != "" {
			s.seen = append(s.seen, e)
		}
	}
	return s.err == nil && !s.fenced
}
