package storage_test

import (
	"errors"
	"fmt"

	"orch.io/controlplane/storage"
)

// A store on a network returns an UnavailableError. API clients see only its Kind.
func ExampleUnavailableError() {
	var err error = &storage.UnavailableError{Kind: "the database does not answer", Err: errors.New("dial tcp 10.0.0.1:5432: connection refused")}
	var unavailable *storage.UnavailableError
	if errors.As(fmt.Errorf("commit: %w", err), &unavailable) {
		fmt.Println(unavailable.Kind)
	}
	// Output: the database does not answer
}
