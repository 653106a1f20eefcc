package servertest_test

import (
	"context"
	"fmt"
	"testing"
)

// example is the testing.TB of examples.
type example struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func (e *example) Failed() bool             { return false }
func (e *example) Helper()                  {}
func (e *example) Context() context.Context { return e.ctx }
func (e *example) Cleanup(f func())         { e.cleanups = append(e.cleanups, f) }
func (e *example) Errorf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}
func (e *example) Fatal(args ...any)                 { panic(fmt.Sprintln(args...)) }
func (e *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (e *example) FailNow()                          { panic("failed") }

// test runs the body of an example and its cleanups.
func test(body func(t testing.TB)) {
	e := &example{ctx: context.Background()}
	defer func() {
		for i := len(e.cleanups) - 1; i >= 0; i-- {
			e.cleanups[i]()
		}
	}()
	body(e)
}
