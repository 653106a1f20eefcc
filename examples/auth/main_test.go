package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	fmt.Println(run(context.Background(), os.Stdout))
	// Output:
	// ann writes her own: <nil>
	// bob reads it: notes.example.com "todo" is forbidden: User "bob" cannot get resource "notes" in API group "example.com" in the namespace "ann"
	// eve reads all: 1
	// eve deletes it: notes.example.com "todo" is forbidden: User "eve" cannot delete resource "notes" in API group "example.com" in the namespace "ann"
	// anonymous reads it: Unauthorized
	// <nil>
}
