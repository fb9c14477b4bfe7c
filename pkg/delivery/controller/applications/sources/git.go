package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/changes"
	"github.com/manifold-dev/manifold/pkg/delivery/pipecd"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/files"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// Repositories fetches commits.
type Repositories interface {
	Resolve(ctx context.Context, request git.Request) (git.Revision, error)
	Fetch(ctx context.Context, request git.Request, revision git.Revision) (*git.Checkout, error)
}

// ErrSecret says that the Secret with the credentials cannot be used.
var ErrSecret = errors.New("the credentials cannot be read")

// ErrFile says that the application file cannot be used.
var ErrFile = errors.New("the application file cannot be used")

// Git reads folders of git repositories.
type Git struct {
	Repositories Repositories
	Secrets      corelisters.SecretLister
}

// Read implements Source. The repository is asked for a commit only after it has shown that these credentials may see it.
func (g Git) Read(ctx context.Context, app *v1alpha1.Application) (*Found, error) {
	source := app.Spec.Source.Git
	request, err := g.Request(app)
	if err != nil {
		return nil, err
	}
	revision, err := g.Repositories.Resolve(ctx, request)
	if err != nil {
		return nil, attributed(err, app, request.Credentials)
	}
	checkout, err := g.Repositories.Fetch(ctx, request, revision)
	if err != nil {
		return nil, attributed(err, app, request.Credentials)
	}
	out := &Found{
		Key: hashOf(source.URL, revision.Commit, source.Path), Origin: originOf(source, checkout.Origin),
		close: func() { _ = checkout.Close() }, // it was only read
	}
	out.Since = func(ctx context.Context, commit string) (git.Changes, error) {
		earlier, err := g.Repositories.Fetch(ctx, request, git.Revision{Commit: commit})
		if err != nil {
			return git.Changes{}, err
		}
		defer earlier.Close()
		return checkout.Since(earlier), nil
	}
	tree := checkout.FS()
	if out.File, err = fileIn(tree, app); err != nil {
		out.Close()
		return nil, err
	}
	out.Unread = otherFiles(tree, source)
	out.Content = func(patterns []string) (string, []string, error) { return contentOf(tree, source.Path, patterns) }
	out.Bundle = func(target v1alpha1.Target, options render.Options) (*render.Bundle, error) {
		return render.Gather(tree, path.Join(source.Path, target.Path), options)
	}
	return out, nil
}

// contentOf is the hash of the files in a folder, and of those elsewhere that match patterns.
func contentOf(tree fs.FS, folder string, patterns []string) (string, []string, error) {
	folder, there := path.Join(".", folder), false
	hash, left, err := files.Hash(tree, func(name string) bool {
		below := folder == "." || strings.HasPrefix(name, folder+"/")
		there = there || below
		return below || changes.MatchesAny(patterns, name)
	})
	if err == nil && !there {
		err = fmt.Errorf("folder %q: %w", folder, fs.ErrNotExist)
	}
	return hash, left, err
}

// Request says by which address and credentials the repository of an application is reached.
func (g Git) Request(app *v1alpha1.Application) (git.Request, error) {
	source := app.Spec.Source.Git
	out := git.Request{URL: source.URL}
	if ref := source.Ref; ref != nil {
		out.Ref = git.Ref{Branch: ref.Branch, Tag: ref.Tag, Semver: ref.Semver, Commit: ref.Commit}
	}
	if source.SecretRef == nil {
		return out, nil
	}
	secret, err := g.Secrets.Secrets(app.Namespace).Get(source.SecretRef.Name)
	switch {
	case apierrors.IsNotFound(err):
		return out, fmt.Errorf("%w: there is no Secret %s/%s, which spec.source.git.secretRef names", ErrSecret, app.Namespace, source.SecretRef.Name)
	case err != nil:
		return out, err
	}
	out.Credentials = git.Credentials{
		Username: string(secret.Data[v1alpha1.GitSecretUsername]), Password: string(secret.Data[v1alpha1.GitSecretPassword]),
		SSHKey: secret.Data[v1alpha1.GitSecretIdentity], KnownHosts: secret.Data[v1alpha1.GitSecretKnownHosts], CA: secret.Data[v1alpha1.GitSecretAuthority],
	}
	return out, nil
}

// attributed says whose credentials an error is about, for whoever is to correct them.
func attributed(err error, app *v1alpha1.Application, as git.Credentials) error {
	about := func(what error) bool { return errors.Is(err, what) }
	if !slices.ContainsFunc([]error{git.ErrCredentials, git.ErrUnfit, git.ErrUntrusted}, about) {
		return err
	}
	ref := app.Spec.Source.Git.SecretRef
	if ref == nil {
		return fmt.Errorf("without credentials, since spec.source.git.secretRef is not set: %w", err)
	}
	without := ""
	if key := lacking(err, as); key != "" {
		without = ", which has no key " + key
	}
	return fmt.Errorf("with Secret %s/%s%s: %w", app.Namespace, ref.Name, without, err)
}

// lacking is the key that a Secret should probably have: who refuses a login does not say what is wrong with it.
func lacking(err error, as git.Credentials) string {
	switch {
	case errors.Is(err, git.ErrUntrusted) && len(as.CA) == 0:
		return v1alpha1.GitSecretAuthority
	case !errors.Is(err, git.ErrCredentials) || len(as.SSHKey) > 0:
		return ""
	case as.Username == "":
		return v1alpha1.GitSecretUsername
	case as.Password == "":
		return v1alpha1.GitSecretPassword
	}
	return ""
}

// Unheard says why no push can be announced to an application that names a webhook, empty if one can. Who sends one is not told.
func (g Git) Unheard(app *v1alpha1.Application) string {
	git := app.Spec.Source.Git
	if git == nil || git.Webhook == nil {
		return ""
	}
	name := git.Webhook.SecretRef.Name
	secret, err := g.Secrets.Secrets(app.Namespace).Get(name)
	switch {
	case err != nil:
		return fmt.Sprintf("spec.source.git.webhook is not honoured: there is no Secret %s/%s", app.Namespace, name)
	case len(secret.Data[v1alpha1.WebhookSecretToken]) == 0:
		return fmt.Sprintf("spec.source.git.webhook is not honoured: Secret %s/%s has no key %s", app.Namespace, name, v1alpha1.WebhookSecretToken)
	}
	return ""
}

func originOf(source *v1alpha1.GitSource, from git.Origin) *v1alpha1.Origin {
	out := &v1alpha1.Origin{URL: source.URL, Path: source.Path, Ref: from.Ref, Commit: from.Commit, Author: from.Author, Message: from.Message}
	if !from.Time.IsZero() {
		out.Time = &metav1.Time{Time: from.Time}
	}
	return out
}

// mostFile bounds the application file, in bytes, and mostUnread the names of others that are told.
const (
	mostFile   = 1 << 20
	mostUnread = 10
)

// fileIn reads the application file in the folder of a source, if there is one.
func fileIn(tree fs.FS, app *v1alpha1.Application) (*pipecd.Application, error) {
	source, uses := app.Spec.Source.Git, pipecd.Uses{Only: app.Spec.PluginsOnly, Account: app.Spec.ServiceAccountName != ""}
	for i := range app.Spec.Plugins {
		uses.Plugins = append(uses.Plugins, app.Spec.Plugins[i].Name)
	}
	name := path.Join(source.Path, source.ApplicationFile())
	file, err := tree.Open(name)
	absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid)
	switch {
	case absent && source.Pipecd != nil && source.Pipecd.File != "":
		return nil, fmt.Errorf("%w: there is no %q, which spec.source.git.pipecd.file names", ErrFile, name)
	case absent:
		return nil, nil // a folder that is none is told by whoever renders it
	case err != nil:
		return nil, fmt.Errorf("%w: %q: %w", ErrFile, name, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, mostFile+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrFile, name, err)
	}
	found, err := pipecd.ParseFor(content, ptr.Deref(source.Pipecd, v1alpha1.PipecdConfig{}), uses)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrFile, name, err)
	}
	return found, nil
}

// otherFiles are the application files in the folder of a source that are not read. Who names one of several has chosen: the others are of other applications.
func otherFiles(tree fs.FS, source *v1alpha1.GitSource) []string {
	if source.Pipecd != nil && source.Pipecd.File != "" {
		return nil
	}
	entries, err := fs.ReadDir(tree, path.Join(".", source.Path))
	if err != nil {
		return nil // which whoever renders the folder tells
	}
	var out []string
	for _, entry := range entries {
		if name := entry.Name(); len(out) < mostUnread && name != v1alpha1.PipecdFile && v1alpha1.IsPipecdFile(name) {
			out = append(out, name)
		}
	}
	return out
}

// ChartFrom returns the path of a chart from the folder that names it, of one that is named from the root of the repository.
func ChartFrom(folder, chart string) string {
	if chart == "" {
		return ""
	}
	out, err := filepath.Rel(path.Join("/", folder), path.Join("/", chart))
	if err != nil {
		return chart // neither happens with absolute paths
	}
	return filepath.ToSlash(out)
}
