package pulls

import (
	"context"
	"errors"
	"time"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/forges"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/rewrite"
)

// Opener opens pull requests. It may be used by several goroutines, but not by two at a time for the same environment of a pipeline.
type Opener interface {
	// Open sees to it that there is a pull request for what is asked for, unless there is nothing to change or a person has decided about it, and returns
	// how it stands. Pull requests for other versions to the same environment are closed once there is one for this. Nothing is remembered from one call to
	// the next.
	Open(ctx context.Context, request Request) (Result, error)
	// Base returns the commit that the base branch is at now, by which is seen whether a repository that has refused has changed.
	Base(ctx context.Context, request Request) (string, error)
}

// Request says which version is to reach which environment, and in which repository.
type Request struct {
	// Forge is one of the types of forges of package weave, URL the address of the repository as git clones it, by https or ssh.
	Forge, URL string
	// BaseBranch is the branch that the pull request is for, Path the folder of the repository that manifests are looked for in, all of it if it is empty.
	BaseBranch, Path string
	// Credentials is the data of the Secret: see the keys below.
	Credentials map[string][]byte
	Pipeline    Pipeline
	Environment string
	App         App
	Version     Version
	// Known is the address in the Result of an earlier call for the same version and environment, if there was one. With it nothing is searched for.
	Known string
}

// Keys of the Secret with the credentials. Those of git are named as for the source of an Application.
const (
	// KeyToken is the token for the forge's API. Over HTTPS it also serves for git if there is no password.
	KeyToken = "token"
	// KeyUsername and KeyPassword are for git over HTTPS.
	KeyUsername = "username"
	KeyPassword = "password"
	// KeyIdentity is a private key for git over SSH, which KeyPassword opens if it is encrypted, and KeyKnownHosts are the hosts that it may be used with.
	KeyIdentity   = "identity"
	KeyKnownHosts = "known_hosts"
	// KeyAuthority is the certificate authority of the forge, in PEM, beside those of the system.
	KeyAuthority = "ca.crt"
)

// Pipeline names a pipeline. The group tells apart those that have the same name in both groups.
type Pipeline struct {
	Group, Namespace, Name string
}

// App says what of the environment gets the version.
type App struct {
	// Kind and Name are those of the app. They may be empty, as in the older group, where a workload says by a label that it is part of a pipeline: then only
	// markers tell what is to change.
	Kind, Name string
	// Namespaces are those of the environment's targets.
	Namespaces []string
}

// Version is what is promoted.
type Version struct {
	// Revision names it in the status of the pipeline: the chart's version, the revision of an Application or a source, or the tags of images.
	Revision string
	// Images are the tags of its images by their repositories, such as "ghcr.io/example/shop". It is empty where the revision says all.
	Images map[string]string
}

// State says how a pull request stands.
type State string

// States of a pull request.
const (
	// Open waits for people.
	Open State = "Open"
	// Merged was merged.
	Merged State = "Merged"
	// Closed was closed by a person without being merged. It is not opened again for the same version.
	Closed State = "Closed"
	// NothingToDo says that the base branch has the version, so that there is no pull request.
	NothingToDo State = "NothingToDo"
)

// Result says how a pull request stands.
type Result struct {
	State State
	// URL is its address, empty where there is none.
	URL string
	// Message says it in words for people.
	Message string
}

// Errors that trying again is of no use for, until the pipeline, the Secret or the repository has changed. Permanent knows them.
var (
	// ErrRefused says that the request makes no sense or is not allowed.
	ErrRefused = outbound.ErrRefused
	// ErrMissing says that no place in the repository is known to take the version.
	ErrMissing = rewrite.ErrMissing
	// ErrAmbiguous says that it is not clear which place is to take the version.
	ErrAmbiguous = rewrite.ErrAmbiguous
	// ErrContent says that a file cannot be changed, or that the repository exceeds a bound.
	ErrContent = rewrite.ErrContent
	// ErrForbidden says that the repository or its forge refuses these credentials, or hides the repository from them.
	ErrForbidden = errors.New("the repository refuses")
)

// atError is one of the content of a commit of the base branch.
type atError struct {
	error
	commit string
}

// Unwrap implements the interface of package errors.
func (e *atError) Unwrap() error { return e.error }

// Refusal makes an error one of the content of a commit of the base branch.
func Refusal(err error, commit string) error { return &atError{err, commit} }

// At returns the commit of the base branch whose content an error is about, "" if it is about something else.
func At(err error) string {
	if of := (*atError)(nil); errors.As(err, &of) {
		return of.commit
	}
	return ""
}

// Permanent reports whether trying again is of no use until something has changed that people change.
func Permanent(err error) bool {
	for _, known := range []error{ErrRefused, ErrMissing, ErrAmbiguous, ErrContent, ErrForbidden} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// Busy returns for how long a forge asks to be left alone that has had too many calls, false if an error says something else.
func Busy(err error) (time.Duration, bool) {
	if busy := (*forges.BusyError)(nil); errors.As(err, &busy) {
		return busy.Pause, true
	}
	return 0, false
}
