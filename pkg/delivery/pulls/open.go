package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/forges"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/rewrite"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// opener implements Opener.
type opener struct {
	repositories *git.Client
	policy       outbound.Policy
	clock        clock.PassiveClock
	// parsing has those wait who would parse manifests while others do, which takes many times their size.
	parsing *semaphore.Weighted
}

// mostParsing is how many repositories are looked through at a time.
const mostParsing = 2

// New returns what opens pull requests in repositories, by calls within a policy.
func New(repositories *git.Client, policy outbound.Policy, clock clock.PassiveClock) Opener {
	return &opener{repositories, policy, clock, semaphore.NewWeighted(mostParsing)}
}

// Who the commits are of.
const (
	author = "Manifold"
	email  = "noreply@manifold.dev"
)

// mostAttempts bounds how many pull requests are opened for one version to one environment, so that two who promote different versions to it do not go on
// opening and closing for ever.
const mostAttempts = 5

// Open implements Opener.
func (o *opener) Open(ctx context.Context, r Request) (Result, error) {
	t, err := o.task(r)
	if err != nil {
		return Result{}, err
	}
	if result, known, err := t.known(ctx); known || err != nil {
		return result, err
	}
	ours, err := t.ours(ctx)
	if err != nil {
		return Result{}, err
	}
	nth, result, decided := t.decide(ours)
	switch {
	case !decided:
		if result, err = t.open(ctx, nth); err != nil {
			return Result{}, err
		}
	case result.State != Open:
		return result, nil
	}
	if err := t.supersede(ctx, ours, result); err != nil {
		return Result{}, err // whoever knew the result would not look for the older ones again
	}
	return result, nil
}

// Base implements Opener.
func (o *opener) Base(ctx context.Context, r Request) (string, error) {
	t, err := o.task(r)
	if err != nil {
		return "", err
	}
	request := t.git
	request.Ref = git.Ref{Branch: t.BaseBranch}
	revision, err := t.repositories.Resolve(ctx, request)
	if err != nil {
		return "", refusing(err)
	}
	return revision.Commit, nil
}

// task is one request on its way.
type task struct {
	*opener
	Request
	names
	forge *forges.Forge
	git   git.Request
}

func (o *opener) task(r Request) (*task, error) {
	for _, needed := range []struct{ what, value string }{
		{"baseBranch", r.BaseBranch}, {"pipeline.namespace", r.Pipeline.Namespace}, {"pipeline.name", r.Pipeline.Name}, {"environment", r.Environment}, {"version", r.Version.Revision},
	} {
		if needed.value == "" {
			return nil, fmt.Errorf("%w: %s: it is empty", ErrRefused, needed.what)
		}
	}
	forge, err := forges.New(forges.Repository{Forge: r.Forge, URL: r.URL, Token: string(r.Credentials[KeyToken]), CA: r.Credentials[KeyAuthority]}, o.policy)
	if err != nil {
		return nil, err
	}
	t := &task{opener: o, Request: r, names: namesOf(r), forge: forge, git: git.Request{URL: r.URL, Credentials: git.Credentials{
		Username: string(r.Credentials[KeyUsername]), Password: string(r.Credentials[KeyPassword]), CA: r.Credentials[KeyAuthority],
		SSHKey: r.Credentials[KeyIdentity], KnownHosts: r.Credentials[KeyKnownHosts],
	}}}
	if t.git.Credentials.Password == "" {
		t.git.Credentials.Password = string(r.Credentials[KeyToken])
		if t.git.Credentials.Username == "" {
			t.git.Credentials.Username = forge.Username()
		}
	}
	return t, nil
}

// known looks at the pull request of an earlier call, if there was one and it is what the call said.
func (t *task) known(ctx context.Context) (Result, bool, error) {
	number, ok := t.forge.Number(t.Known)
	if !ok {
		return Result{}, false, nil
	}
	pull, err := t.forge.Find(ctx, number)
	switch {
	case errors.Is(err, forges.ErrNotFound):
		return Result{}, false, nil
	case err != nil:
		return Result{}, false, t.explain("look at the pull request "+t.forge.Address(number), err)
	}
	return t.result(pull), t.mine(pull) && t.nth(pull.Branch) > 0, nil
}

// mine reports whether a pull request is one of ours for the environment. Strangers may open others from branches of the same names in their own copies.
func (t *task) mine(pull forges.Pull) bool {
	return pull.Own && pull.Base == t.BaseBranch && len(pull.Branch) > len(t.folder) && pull.Branch[:len(t.folder)] == t.folder
}

// ours are our pull requests for the environment, the newest first.
func (t *task) ours(ctx context.Context) ([]forges.Pull, error) {
	all, err := t.forge.List(ctx, t.BaseBranch)
	if err != nil {
		return nil, t.explain("list the pull requests", err)
	}
	out := slices.DeleteFunc(all, func(pull forges.Pull) bool { return !t.mine(pull) })
	slices.SortFunc(out, func(a, b forges.Pull) int { return b.Number - a.Number })
	return out, nil
}

// decide returns how the pull request for the version stands, or which one for it is to be opened. What became of one holds until another version has been
// asked for since.
func (t *task) decide(ours []forges.Pull) (nth int, result Result, decided bool) {
	same := func(pull forges.Pull) bool { return t.nth(pull.Branch) > 0 }
	last := slices.IndexFunc(ours, func(pull forges.Pull) bool { return same(pull) && pull.State == forges.Open })
	if last < 0 { // none that somebody has opened again
		last = slices.IndexFunc(ours, same)
	}
	if last < 0 {
		return 1, Result{}, false
	}
	pull := ours[last]
	nth = t.nth(pull.Branch) + 1
	result = t.result(pull)
	switch {
	case pull.State == forges.Open, last == 0:
		return 0, result, true
	case nth > mostAttempts:
		result.Message += fmt.Sprintf("; other versions have come between %d times, so that it is not opened once more: look whether another pipeline promotes to the same environment", mostAttempts)
		return 0, result, true
	}
	return nth, Result{}, false
}

// result says how a pull request stands.
func (t *task) result(pull forges.Pull) Result {
	out := Result{URL: t.forge.Address(pull.Number)}
	switch pull.State {
	case forges.Merged:
		out.State, out.Message = Merged, "the pull request is merged"
	case forges.Closed:
		out.State, out.Message = Closed, "the pull request was closed without being merged, and is not opened again for this version"
	default:
		out.State, out.Message = Open, "the pull request waits to be merged"
	}
	return out
}

// open makes the change and opens a pull request for it.
func (t *task) open(ctx context.Context, nth int) (Result, error) {
	branch := t.attempt(nth)
	changed, done, err := t.push(ctx, branch)
	switch {
	case err != nil:
		return Result{}, err
	case done:
		return Result{State: NothingToDo, Message: fmt.Sprintf("branch %q has %s already", t.BaseBranch, text.Line(t.Version.Revision, mostTitle))}, nil
	}
	pull, err := t.forge.Create(ctx, forges.Input{Title: t.title, Body: description(t.Request, changed), Branch: branch, Base: t.BaseBranch})
	if err != nil {
		return Result{}, t.explain(fmt.Sprintf("open a pull request from branch %q to %q", branch, t.BaseBranch), err)
	}
	return t.result(pull), nil
}

// push sees to it that a branch has the change, and returns what it changes of the base branch, or that this has the version.
func (t *task) push(ctx context.Context, branch string) (changed []rewrite.Change, done bool, err error) {
	base, result, err := t.rewritten(ctx, t.BaseBranch)
	if errors.Is(err, git.ErrNoRef) {
		err = fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err != nil {
		return nil, false, err
	}
	defer base.Close()
	if changed = result.Changes; len(changed) == 0 {
		return nil, true, nil
	}
	switch there, more, err := t.rewritten(ctx, branch); {
	case errors.Is(err, git.ErrNoRef):
		return changed, false, t.commit(ctx, base, branch, result)
	case err != nil:
		return nil, false, err
	default: // it was pushed before, and somebody may have gone on with it
		defer there.Close()
		if len(more.Changes) > 0 {
			err = t.commit(ctx, there, branch, more)
		}
		return changed, false, err
	}
}

// rewritten reads a branch, and says what is to change of it. Who calls it closes the checkout.
func (t *task) rewritten(ctx context.Context, branch string) (*git.Checkout, rewrite.Result, error) {
	request := t.git
	request.Ref = git.Ref{Branch: branch}
	revision, err := t.repositories.Resolve(ctx, request)
	if err != nil {
		return nil, rewrite.Result{}, refusing(err)
	}
	checkout, err := t.repositories.Fetch(ctx, request, revision)
	if err != nil {
		return nil, rewrite.Result{}, refusing(err)
	}
	wanted := rewrite.Wanted{
		Namespace: t.Pipeline.Namespace, Pipeline: t.Pipeline.Name, Environment: t.Environment, Path: t.Path,
		Kind: t.App.Kind, Name: t.App.Name, Namespaces: t.App.Namespaces, Revision: t.Version.Revision, Images: t.Version.Images,
	}
	result, err := t.rewrite(ctx, checkout, wanted)
	if err == nil {
		return checkout, result, nil
	}
	_ = checkout.Close() // it was only read
	if errors.Is(err, rewrite.ErrVersion) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	err = fmt.Errorf("promote %s/%s in %s: branch %q: %w", t.Pipeline.Namespace, t.Pipeline.Name, t.Environment, branch, err)
	if branch == t.BaseBranch {
		err = Refusal(err, revision.Commit)
	}
	return nil, rewrite.Result{}, err
}

func (t *task) rewrite(ctx context.Context, checkout *git.Checkout, wanted rewrite.Wanted) (rewrite.Result, error) {
	if err := t.parsing.Acquire(ctx, 1); err != nil {
		return rewrite.Result{}, err
	}
	defer t.parsing.Release(1)
	files, err := manifests(checkout, wanted)
	if err != nil {
		return rewrite.Result{}, err
	}
	return rewrite.Rewrite(files, wanted)
}

func (t *task) commit(ctx context.Context, on *git.Checkout, branch string, result rewrite.Result) error {
	_, err := t.repositories.Push(ctx, t.git, on, git.Change{
		Branch: branch, Files: result.Files, Author: author, Email: email, Time: t.clock.Now().UTC(),
		Message: t.title + "\n\n" + list(result.Changes, func(s string) string { return s }),
	})
	if errors.Is(err, git.ErrRejected) {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return refusing(err)
}

// supersede closes our pull requests for other versions.
func (t *task) supersede(ctx context.Context, ours []forges.Pull, now Result) error {
	comment := fmt.Sprintf("Closed, since branch %s has %s now.", code(t.BaseBranch), code(t.Version.Revision))
	if now.URL != "" {
		comment = fmt.Sprintf("Closed, since %s promotes %s to %s now.", now.URL, code(t.Version.Revision), code(t.Environment))
	}
	for _, pull := range ours {
		if pull.State != forges.Open || t.forge.Address(pull.Number) == now.URL {
			continue
		}
		if err := t.forge.Close(ctx, pull.Number, comment); err != nil {
			return t.explain("close the older pull request "+t.forge.Address(pull.Number), err)
		}
	}
	return nil
}

// explain says what has failed at the forge.
func (t *task) explain(doing string, err error) error {
	if errors.Is(err, forges.ErrForbidden) || errors.Is(err, forges.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return fmt.Errorf("%s of %s: %w", doing, t.forge, err)
}

// refusing gives an error of git the kind that says whether trying again is of use.
func refusing(err error) error {
	switch {
	case errors.Is(err, git.ErrCredentials), errors.Is(err, git.ErrNoRepository):
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	case errors.Is(err, git.ErrTooLarge), errors.Is(err, git.ErrContent):
		return fmt.Errorf("%w: %w", ErrContent, err)
	}
	return err
}
