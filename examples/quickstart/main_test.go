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
	// refused: Widget.example.com "cog" is invalid: spec.color: Unsupported value: "blue": supported values: "green", "red"
	// ADDED cog: green, size 3
	// MODIFIED cog: red, size 3
	// DELETED cog: red, size 3
	// <nil>
}
