package server

import "time"

// Limits bounds requests. A zero field means the default that its comment gives.
//
// Of LargeBodies, LongAnswers, Requests, Watches and Connections every priority level keeps the
// share that it does not lend, half of all at most. A quarter is for who holds
// nothing yet; of the rest of what his level may have nobody may hold more than is
// still free: one user has half of it at most, two have a third each. The service accounts of a namespace are one user here. Users
// of an exempt level are not bounded. Who has too much is told so with 429.
type Limits struct {
	Body           int64         // bytes of a request body: 3 MiB
	LargeBodies    int64         // bytes of room for all bodies over 16 KiB at a time, made as they come, held until the answer: 24 MiB; see below
	LongAnswers    int64         // bytes of all answers over 16 KiB made for one caller, until they are read; of JSON lists what is made for them alone: 128 MiB; see below
	Depth          int           // nesting of JSON and YAML: 1000
	Entries        int           // of one object or list in a body: 20,000
	InFlight       int           // seats: requests that are worked on at a time, shared as Serving.FlowControl says: 600
	Requests       int           // requests at a time, those that wait for a body, a seat or a reader among them, but no watches and connections: 8 times InFlight; see below
	Watches        int           // watches at a time: 100,000; see below
	Connections    int           // connections to nodes and pods, such as of exec, log and proxy, at a time, each with two sockets and ten times the memory of a watch: 10,000; see below
	RequestTime    time.Duration // of one request that is no watch and no connection: 60 s
	WatchTime      time.Duration // of one watch without timeoutSeconds: 30 to 60 minutes at random
	FutureWait     time.Duration // for a resourceVersion from the future: 3 s
	PatchOps       int           // operations of a JSON patch: 10,000
	History        time.Duration // of watches, exact lists and continue tokens: 5 minutes
	CollectionPage int           // objects that one deletecollection removes at most: 100,000
	ObjectBytes    int64         // of one object, as JSON of its hub: no bound. A larger one is 413; with Kubernetes names it is 500, as etcd's limit is there. What makes an object smaller, and deletions, always pass
	NamespaceBytes int64         // of all objects of one namespace, as JSON of their hubs; what would exceed it is 403: no bound
	StoreBytes     int64         // of all objects; what would exceed it is 507: no bound. What makes objects smaller, and deletions, always pass
	HistoryBytes   int64         // of replaced objects kept in memory for watches and paging, older ones come from the store: 32 MiB
}

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

// gzipFrom is the default of Serving.GzipFrom.
const gzipFrom = 128 << 10
