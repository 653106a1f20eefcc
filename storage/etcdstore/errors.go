package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"orch.io/controlplane/storage"
)

// storageError converts an error of etcd to the errors of storage.Backend. caller is the context of the
// caller; the error of the caller takes precedence.
func (s *Store) storageError(caller context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case caller.Err() != nil:
		return caller.Err()
	case s.lifetime.Err() != nil:
		return storage.ErrClosed
	case errors.Is(err, errUnknown):
		return hideDeadline(err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	case tooLarge(err):
		return fmt.Errorf("%w: %w", storage.ErrTooLarge, err)
	}
	return hideDeadline(err)
}

// hideDeadline removes context.DeadlineExceeded from the chain of err: the deadline belongs to the
// store, and callers must not take it for their own.
func hideDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("etcd did not answer in time: %s", err)
	}
	return err
}

// tooLarge reports whether etcd, or the connection to it, rejected a request or an answer because of
// its size.
func tooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrTooManyOps) ||
		codeOf(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// codeOf returns the gRPC code of an error, or OK if it has none.
func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	var of interface{ GRPCStatus() *status.Status }
	switch {
	case errors.As(err, &known):
		return known.Code()
	case errors.As(err, &of):
		return of.GRPCStatus().Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	}
	return codes.OK
}

// retryable reports whether another attempt, perhaps on another member, may succeed. The failed attempt
// may have been executed.
func (s *Store) retryable(err error) bool {
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal:
		return true
	case codes.Canceled:
		return true // canceled by the server: callers check their own context first
	case codes.Unknown:
		return strings.Contains(err.Error(), "raft: stopped") || s.notExecuted(err) // from a member that is stopping or was removed
	}
	return s.notExecuted(err)
}

// notExecuted reports whether a member rejected a call without executing it, and another attempt may
// succeed.
func (s *Store) notExecuted(err error) bool {
	return errors.Is(err, rpctypes.ErrTooManyRequests) || errors.Is(err, errLearner) || s.tokenExpired(err) ||
		codeOf(err) == codes.Unknown && strings.Contains(err.Error(), "raft proposal dropped") // from a member that has just lost its leader
}

// errLearner is returned by a learner: a member that has no vote yet and rejects almost all calls.
var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// tokenExpired reports whether the token of the client was no longer valid, or missing because
// authentication was enabled after the client connected. The client then requests a new token by
// itself, if the store has a user.
func (s *Store) tokenExpired(err error) bool {
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || s.user && errors.Is(err, rpctypes.ErrUserEmpty)
}

// retry makes an idempotent call until it succeeds, fails with an error that is not retryable, or
// callTime has passed.
func (s *Store) retry(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	ctx, route := routed(ctx)
	// A member that is cut off from the others may not answer for a long time, so attempts are short at
	// first, and the route of the context sends the next attempt to another member.
	for pause, most := pauseTime, firstAttempt; ; pause, most = min(2*pause, longPauseTime), min(2*most, attemptTime) {
		attempt, done := attemptContext(ctx, most)
		err := call(attempt)
		done()
		if err == nil || ctx.Err() != nil || !s.retryable(err) {
			return err
		}
		s.noteFailure(route, err)
		s.logger.Debug("etcd did not answer, trying again", "error", err)
		if !wait(ctx, pause) {
			return err
		}
	}
}

// wait waits for d. It reports false if the context ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
