package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestErrorsThatPassByThemselvesAreNotShownToUsers(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"something is on its way":          {fmt.Errorf("namespace: %w", ErrNotYet), true},
		"the process ends":                 {context.Canceled, true},
		"a step takes too long":            {fmt.Errorf("mark: %w", context.DeadlineExceeded), true},
		"the cluster refuses connections":  {&url.Error{Op: "Get", URL: "https://east", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}, true},
		"the cluster does not answer":      {&url.Error{Op: "Get", URL: "https://east", Err: context.DeadlineExceeded}, true},
		"an answer breaks off":             {&url.Error{Op: "Get", URL: "https://east", Err: io.ErrUnexpectedEOF}, true},
		"the connection is lost":           {errors.New("http2: client connection lost"), true},
		"a name does not resolve":          {&net.DNSError{Err: "no such host", Name: "east"}, true},
		"somebody else was faster":         {apierrors.NewConflict(secrets, "key", errors.New("changed")), true},
		"the cluster asks for patience":    {apierrors.NewTooManyRequests("slow down", 1), true},
		"the cluster is overloaded":        {apierrors.NewServerTimeout(secrets, "create", 1), true},
		"the cluster takes too long":       {apierrors.NewTimeoutError("too long", 1), true},
		"the cluster is starting":          {apierrors.NewServiceUnavailable("starting"), true},
		"the cluster's storage has failed": {fmt.Errorf("create: %w", apierrors.NewInternalError(errors.New("etcd"))), true},

		"the name is taken":         {&ConflictError{"taken"}, false},
		"a right is missing":        {apierrors.NewForbidden(secrets, "key", errors.New("no")), false},
		"the object is not valid":   {apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "key", nil), false},
		"the credential is no good": {apierrors.NewUnauthorized("who?"), false},
		"a webhook refuses it":      {apierrors.NewBadRequest("no"), false},
		"the kind is not served":    {apierrors.NewNotFound(secrets, ""), false},
		"our own mistake":           {errors.New("unknown step"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Passes(test.err); got != test.want {
				t.Errorf("passes: %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhichErrorsSayThatNothingWasWritten(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"the name is taken":                {fmt.Errorf("act: %w", &ConflictError{"taken"}), true},
		"something is on its way":          {ErrNotYet, true},
		"a right is missing":               {fmt.Errorf("act: %w", apierrors.NewForbidden(secrets, "key", errors.New("no"))), true},
		"somebody else was faster":         {apierrors.NewConflict(secrets, "key", errors.New("changed")), true},
		"the cluster asks for patience":    {apierrors.NewTooManyRequests("slow down", 1), true},
		"it is gone":                       {apierrors.NewNotFound(secrets, "key"), true},
		"the cluster takes too long":       {apierrors.NewTimeoutError("too long", 1), false},
		"the cluster is overloaded":        {apierrors.NewServerTimeout(secrets, "create", 1), false},
		"the cluster's storage has failed": {apierrors.NewInternalError(errors.New("etcd")), false},
		"an answer breaks off":             {&url.Error{Op: "Get", URL: "https://east", Err: io.ErrUnexpectedEOF}, false},
		"the process ends":                 {context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Refused(test.err); got != test.want {
				t.Errorf("refused: %t, want %t", got, test.want)
			}
		})
	}
}
