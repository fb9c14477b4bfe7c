package writer

import (
	"context"
	"errors"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// BrokenTries is how often a step in a row must have failed by an error inside the cluster until users are told: for some three seconds.
const BrokenTries = 6

// ErrNotYet asks for another try: something that must be there first is on its way.
var ErrNotYet = errors.New("not yet")

// ConflictError is about a name in the cluster that is somebody else's.
type ConflictError struct{ Reason string }

// Error implements error.
func (e *ConflictError) Error() string { return e.Reason }

// Shown reports whether an error is for users, after so many tries in a row: one that does not pass by itself, and one inside the cluster that
// lasts. That is the answer of one whose storage fails for a moment, but also of one with a webhook that cannot be called, which takes a person.
func Shown(err error, tries int) bool {
	return !Passes(err) || apierrors.IsInternalError(err) && tries >= BrokenTries
}

// Passes reports whether an error passes by itself, without a person. The caches may be a moment behind, or the cluster is silent, which its
// Ready condition tells.
func Passes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return errors.Is(err, ErrNotYet) || errors.Is(err, context.Canceled) || Unanswered(err)
	}
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}

// Refused reports whether an error says that nothing was written. After any other one, something may have been.
func Refused(err error) bool {
	var conflict *ConflictError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &conflict), errors.Is(err, ErrNotYet):
		return true
	case !errors.As(err, &status):
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500
}

// Unanswered reports whether an error is no answer of the cluster: a request did not reach it, or its answer did not come back.
func Unanswered(err error) bool {
	var request *url.Error
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || utilnet.IsConnectionRefused(err) ||
		errors.As(err, &request) || errors.As(err, &network) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}
