package server

import "time"

// Limits bounds the cost of requests. A zero field means the default that its comment gives.
//
// The limits marked as shared are divided among users. Every priority level keeps the part that it
// does not lend to others; these parts are at most half of the limit. All levels share the rest. A
// quarter of each part is reserved for users that hold nothing yet. Of the remainder that is
// available to its level, a user may hold at most as much as it leaves free: a single user gets at
// most half, and two users get at most a third each. The service accounts of a namespace count as
// one user. Users of an exempt level are not bounded. A request that exceeds a shared limit is
// refused with 429.
type Limits struct {
	// Body is the size of one request body in bytes. Default: 3 MiB.
	Body int64

	// LargeBodies is the total size in bytes of all request bodies over 16 KiB. The bytes are
	// reserved as a body arrives and held until the response is made. Shared. Default: 24 MiB.
	LargeBodies int64

	// LongAnswers is the total size in bytes of all responses over 16 KiB, until the clients have
	// read them. Of a JSON list, only the bytes that are not shared with the cache count. Shared.
	// Default: 128 MiB.
	LongAnswers int64

	// Depth is the number of nested levels in a JSON or YAML body. Default: 1000.
	Depth int

	// Entries is the number of entries of an object or list in a body. Default: 20,000.
	Entries int

	// InFlight is the number of seats, which bounds the requests that run concurrently.
	// Serving.FlowControl divides the seats. Default: 600.
	InFlight int

	// Requests is the number of concurrent requests other than watches and connections, including
	// requests that wait for a body, a seat or a reader. Shared. Default: 8 times InFlight.
	Requests int

	// Watches is the number of concurrent watches. Shared. Default: 100,000.
	Watches int

	// Connections is the number of concurrent connections to nodes and pods, such as exec, log and
	// proxy. Each has two sockets and ten times the memory of a watch. Shared. Default: 10,000.
	Connections int

	// RequestTime is the duration of a request other than a watch or connection. Default: 60 s.
	RequestTime time.Duration

	// WatchTime is the minimum duration of a watch without timeoutSeconds. The actual duration is
	// random, up to twice as long. Default: 30 minutes.
	WatchTime time.Duration

	// FutureWait is how long a read waits for a resourceVersion that the server has not seen yet.
	// Default: 3 s.
	FutureWait time.Duration

	// PatchOps is the number of operations in a JSON patch. Default: 10,000.
	PatchOps int

	// History is the age up to which watches, exact lists and continue tokens can use a
	// resourceVersion. Default: 5 minutes.
	History time.Duration

	// CollectionPage is the number of objects that a deletecollection request deletes. Default:
	// 100,000.
	CollectionPage int

	// ObjectBytes is the size of an object in bytes, as JSON in its hub version. Writes of larger
	// objects fail with 413, or with 500 and etcd's message under Kubernetes names. Deletions, and
	// writes that make the object smaller, always succeed. Default: no bound.
	ObjectBytes int64

	// NamespaceBytes is the total size of the objects of a namespace, measured as for ObjectBytes.
	// Writes that would exceed it fail with 403. Default: no bound.
	NamespaceBytes int64

	// StoreBytes is the total size of all objects, measured as for ObjectBytes. Writes that would
	// exceed it fail with 507. Deletions, and writes that make objects smaller, always succeed.
	// Default: no bound.
	StoreBytes int64

	// HistoryBytes is the size of replaced objects that are kept in memory for watches and paging.
	// Older states are read from the store. Default: 32 MiB.
	HistoryBytes int64
}

// withDefaults returns the limits with defaults for zero fields, except fields without a
// bound by default and fields with a default that is set where they are used.
func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if l.Body == 0 {
		l.Body = 3 << 20
	}
	if l.LargeBodies == 0 {
		l.LargeBodies = 24 << 20
	}
	def(&l.Depth, 1000)
	def(&l.Entries, 20_000)
	if l.LongAnswers == 0 {
		l.LongAnswers = 128 << 20
	}
	def(&l.InFlight, 600)
	def(&l.Requests, 8*l.InFlight)
	def(&l.Watches, 100_000)
	def(&l.Connections, 10_000)
	def(&l.PatchOps, 10_000)
	def(&l.CollectionPage, 100_000)
	span(&l.RequestTime, time.Minute)
	span(&l.WatchTime, 0)
	span(&l.FutureWait, 3*time.Second)
	span(&l.History, 5*time.Minute)
	return l
}

// gzipFrom is the default of Serving.GzipFrom, in bytes.
const gzipFrom = 128 << 10
