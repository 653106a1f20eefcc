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

// told makes of an error of etcd what the contract calls it. asked is the caller's own
// context.
func (s *Store) told(asked context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case asked.Err() != nil:
		return asked.Err()
	case s.life.Err() != nil:
		return storage.ErrClosed
	case errors.Is(err, errUnknown):
		return hidden(err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	case tooLarge(err):
		return fmt.Errorf("%w: %w", storage.ErrTooLarge, err)
	}
	return hidden(err)
}

// hidden hides a deadline that is the store's own, and that callers must not take for theirs.
func hidden(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("etcd did not answer in time: %s", err)
	}
	return err
}

// tooLarge says that etcd, or the connection to it, takes no request of the size.
func tooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrTooManyOps) ||
		codeOf(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// codeOf is what kind of error of a call it is; OK if it is none.
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

// passing says that another attempt, maybe at another member, may succeed.
func (s *Store) passing(err error) bool {
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal:
		return true
	case codes.Canceled:
		return true // by the other side: those who look at this know that they did not
	case codes.Unknown:
		return strings.Contains(err.Error(), "raft: stopped") || s.turnedAway(err) // by a member that ends, or has left
	}
	return s.turnedAway(err)
}

// turnedAway says that a member did not take a call, but another attempt may succeed.
func (s *Store) turnedAway(err error) bool {
	return errors.Is(err, rpctypes.ErrTooManyRequests) || errors.Is(err, errLearner) || s.expired(err) ||
		codeOf(err) == codes.Unknown && strings.Contains(err.Error(), "raft proposal dropped") // by a member that had a leader just now
}

// errLearner says that a member has no vote yet, and so answers almost nothing.
var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// expired says that the client's token counted no more, or that it had none because etcd asked for
// none until now. The client has got another one, if the store has a user.
func (s *Store) expired(err error) bool {
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || s.user && errors.Is(err, rpctypes.ErrUserEmpty)
}

// again makes a call that may be made several times until it succeeds, fails for good, or
// its time is up.
func (s *Store) again(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	ctx, route := routed(ctx)
	// A member that is cut off from the others may say nothing for long, and the next
	// attempt asks another one.
	for pause, most := pauseTime, firstAttempt; ; pause, most = min(2*pause, longPauseTime), min(2*most, attemptTime) {
		attempt, done := bounded(ctx, most)
		err := call(attempt)
		done()
		if err == nil || ctx.Err() != nil || !s.passing(err) {
			return err
		}
		s.unanswered(route, err)
		s.logger.Debug("etcd did not answer, trying again", "error", err)
		if !wait(ctx, pause) {
			return err
		}
	}
}

// wait reports false if the context ends before the time has passed.
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
