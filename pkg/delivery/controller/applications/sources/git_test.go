package sources

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// login is a Secret of namespace shop with these keys, each with a value that tells it from the others.
func login(keys ...string) corelisters.SecretLister {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Data: map[string][]byte{}}
	for _, key := range keys {
		secret.Data[key] = []byte("the " + key)
	}
	_ = store.Add(secret) // it has a key
	return corelisters.NewSecretLister(store)
}

// following is an application of namespace shop that follows a repository, with a Secret unless the name is empty.
func following(secret string, ref *v1alpha1.GitRef) *v1alpha1.Application {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	app.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example/shop.git", Ref: ref}
	if secret != "" {
		app.Spec.Source.Git.SecretRef = &v1alpha1.SecretReference{Name: secret}
	}
	return app
}

// all are the keys that a Secret may have for a repository, and refs what may be followed there. Users write these names, so they are spelled out.
var (
	all  = []string{"username", "password", "identity", "known_hosts", "ca.crt"}
	whom = git.Credentials{
		Username: "the username", Password: "the password", SSHKey: []byte("the identity"), KnownHosts: []byte("the known_hosts"), CA: []byte("the ca.crt"),
	}
	refs = &v1alpha1.GitRef{Branch: "main", Tag: "v1.4.2", Semver: ">=1.0.0 <2.0.0", Commit: "0a0a"}
	what = git.Ref{Branch: "main", Tag: "v1.4.2", Semver: ">=1.0.0 <2.0.0", Commit: "0a0a"}
)

func TestWhatIsAskedOfARepository(t *testing.T) {
	for name, test := range map[string]struct {
		keys   []string
		secret string
		ref    *v1alpha1.GitRef
		as     git.Credentials
		of     git.Ref
	}{
		"nothing but the URL":                    {},
		"an empty ref is none":                   {ref: &v1alpha1.GitRef{}},
		"a branch":                               {ref: &v1alpha1.GitRef{Branch: "main"}, of: git.Ref{Branch: "main"}},
		"a tag":                                  {ref: &v1alpha1.GitRef{Tag: "v1.4.2"}, of: git.Ref{Tag: "v1.4.2"}},
		"a range of versions":                    {ref: &v1alpha1.GitRef{Semver: "^1"}, of: git.Ref{Semver: "^1"}},
		"a commit":                               {ref: &v1alpha1.GitRef{Commit: "0a0a"}, of: git.Ref{Commit: "0a0a"}},
		"every ref that there is":                {ref: refs, of: what},
		"a username":                             {secret: "login", keys: []string{"username"}, as: git.Credentials{Username: "the username"}},
		"a password, also of a key":              {secret: "login", keys: []string{"password"}, as: git.Credentials{Password: "the password"}},
		"a key":                                  {secret: "login", keys: []string{"identity"}, as: git.Credentials{SSHKey: []byte("the identity")}},
		"hosts":                                  {secret: "login", keys: []string{"known_hosts"}, as: git.Credentials{KnownHosts: []byte("the known_hosts")}},
		"an authority":                           {secret: "login", keys: []string{"ca.crt"}, as: git.Credentials{CA: []byte("the ca.crt")}},
		"every credential that there is":         {secret: "login", keys: all, as: whom},
		"a Secret without any":                   {secret: "login"},
		"keys that are for something else":       {secret: "login", keys: []string{"token", "identity.pub", "Password", "caFile"}},
		"credentials that nobody names":          {keys: all},
		"every ref and credential that there is": {secret: "login", keys: all, ref: refs, as: whom, of: what},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Git{Secrets: login(test.keys...)}.Request(following(test.secret, test.ref))
			want := git.Request{URL: "https://git.example/shop.git", Ref: test.of, Credentials: test.as}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("it asks for %+v (%v), want %+v", got, err, want)
			}
		})
	}
}

// What can be asked of a repository and cannot be said in an Application, or the other way round, is of no use to anybody.
func TestEverythingThatCanBeAskedOfARepositoryIs(t *testing.T) {
	for _, value := range []any{*refs, what, whom} {
		fields := reflect.ValueOf(value)
		for i := range fields.NumField() {
			if fields.Field(i).IsZero() {
				t.Errorf("%s of %T is in no test of what is asked", fields.Type().Field(i).Name, value)
			}
		}
	}
}

func TestASecretThatIsNotThereIsNamed(t *testing.T) {
	_, err := Git{Secrets: login(all...)}.Request(following("logon", nil))
	if !errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), "there is no Secret shop/logon, which spec.source.git.secretRef names") {
		t.Errorf("error %v, want one that names the Secret", err)
	}
	elsewhere := following("login", nil)
	elsewhere.Namespace = "bank"
	if _, err := (Git{Secrets: login(all...)}).Request(elsewhere); !errors.Is(err, ErrSecret) {
		t.Errorf("error %v for the Secret of another namespace, want %v", err, ErrSecret)
	}
}

// answering is a repository that answers by an error.
type answering struct{ err error }

func (a answering) Resolve(context.Context, git.Request) (git.Revision, error) {
	return git.Revision{}, a.err
}

func (a answering) Fetch(context.Context, git.Request, git.Revision) (*git.Checkout, error) {
	return nil, a.err
}

func TestTheSecretIsNamedWhoseCredentialsAreOfNoUse(t *testing.T) {
	for name, test := range map[string]struct {
		secret string
		keys   []string
		err    error
		says   string // what is said before the error
	}{
		"a password that is wrong":           {"login", []string{"username", "password"}, git.ErrCredentials, "with Secret shop/login: "},
		"a password that is not there":       {"login", []string{"username", "Password"}, git.ErrCredentials, "with Secret shop/login, which has no key password: "},
		"a username that is not there":       {"login", []string{"password"}, git.ErrCredentials, "with Secret shop/login, which has no key username: "},
		"a key that the host does not know":  {"login", []string{"identity", "known_hosts"}, git.ErrCredentials, "with Secret shop/login: "},
		"a key that is not there":            {"login", []string{"known_hosts"}, git.ErrUnfit, "with Secret shop/login: "},
		"an authority that is not there":     {"login", []string{"username", "password"}, git.ErrUntrusted, "with Secret shop/login, which has no key ca.crt: "},
		"an authority that is another":       {"login", []string{"ca.crt"}, git.ErrUntrusted, "with Secret shop/login: "},
		"a host that asks, and no Secret":    {"", nil, git.ErrCredentials, "without credentials, since spec.source.git.secretRef is not set: "},
		"ssh, and no Secret":                 {"", nil, git.ErrUnfit, "without credentials, since spec.source.git.secretRef is not set: "},
		"what has to do with no credentials": {"login", nil, git.ErrNoRepository, ""},
		"what is refused for another reason": {"login", nil, git.ErrRefused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cause := fmt.Errorf("look up the default branch: %w", test.err)
			_, err := Git{Repositories: answering{cause}, Secrets: login(test.keys...)}.Read(t.Context(), following(test.secret, nil))
			if want := test.says + cause.Error(); !errors.Is(err, test.err) || err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
		})
	}
}
