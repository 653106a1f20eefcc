package eventlog_test

import (
	"fmt"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// A store keeps its recent commits for watches. A reader before Floor has missed commits.
func Example() {
	var log eventlog.Log[string]
	log.Init(0, eventlog.Limits{Events: 3})
	for i, event := range []string{"a", "b", "c", "d", "e"} {
		log.Append(time.Now(), eventlog.Commit[string]{Revision: storage.Revision(i + 1), Events: []string{event}, Bytes: 1})
	}
	fmt.Println("dropped up to", log.Floor())
	for at := storage.Revision(3); at < log.Newest(); {
		for _, c := range log.After(at) {
			fmt.Println(c.Revision, c.Events)
			at = c.Revision
		}
	}
	// Output:
	// dropped up to 2
	// 4 [d]
	// 5 [e]
}
