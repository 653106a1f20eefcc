package storage_test

import (
	"errors"
	"fmt"

	"orch.io/controlplane/storage"
)

// A store over a network names the trouble that it has; callers of the server see the kind alone.
func ExampleUnavailableError() {
	var err error = &storage.UnavailableError{Kind: "the database does not answer", Err: errors.New("dial tcp 10.0.0.1:5432: connection refused")}
	var trouble *storage.UnavailableError
	if errors.As(fmt.Errorf("commit: %w", err), &trouble) {
		fmt.Println(trouble.Kind)
	}
	// Output: the database does not answer
}
