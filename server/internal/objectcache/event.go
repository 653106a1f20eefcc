package objectcache

// EventType is the kind of an event in the watch protocol.
type EventType uint8

// The event types.
const (
	Added EventType = iota + 1
	Modified
	Deleted
)

// String returns the event type as the watch protocol names it.
func (t EventType) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	}
	return "UNKNOWN"
}

// TypeOf returns the type of an event.
func TypeOf(ev Event) EventType {
	switch {
	case ev.Old == nil:
		return Added
	case ev.New == nil:
		return Deleted
	}
	return Modified
}

// ObjectOf returns the object of an event in the watch protocol: the new object, or, for Deleted, the old object with
// the revision of the event. All readers get the same entry.
func ObjectOf(ev Event) *Entry {
	if ev.New != nil {
		return ev.New
	}
	return ev.Old.replacedAt(ev.Revision)
}

// Narrow returns the event for a reader that sees only the entries that match. It returns false if that reader sees
// neither the old nor the new entry.
func Narrow(ev Event, match func(*Entry) bool) (Event, bool) {
	if ev.Old != nil && !match(ev.Old) {
		ev.Old = nil
	}
	if ev.New != nil && !match(ev.New) {
		ev.New = nil
	}
	return ev, ev.Old != nil || ev.New != nil
}

// Frame returns an event in an encoding, framed for a stream. Like Entry.Encoded, it calls make only if the frame is
// not kept. The bytes are shared and must not be modified.
func Frame(ev Event, key EncodingKey, make func() ([]byte, error)) ([]byte, error) {
	return ObjectOf(ev).encode(encodingKey{EncodingKey: key, event: TypeOf(ev)}, make)
}
