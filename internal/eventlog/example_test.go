package eventlog_test

import (
	"fmt"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// A store keeps its last commits for watches, and tells those that are too late.
func Example() {
	var log eventlog.Log[string]
	log.Init(0, eventlog.Limits{Events: 3})
	for i, what := range []string{"a", "b", "c", "d", "e"} {
		log.Append(time.Now(), eventlog.Commit[string]{Revision: storage.Revision(i + 1), Events: []string{what}, Bytes: 1})
	}
	fmt.Println("forgotten up to", log.Floor())
	for at := storage.Revision(3); at < log.Newest(); {
		for _, c := range log.After(at) {
			fmt.Println(c.Revision, c.Events)
			at = c.Revision
		}
	}
	// Output:
	// forgotten up to 2
	// 4 [d]
	// 5 [e]
}
