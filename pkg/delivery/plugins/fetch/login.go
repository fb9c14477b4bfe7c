package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Login is by what a program is fetched: a name and a password, or a configuration of Docker that has those of registries. It is for the host of the URL alone, and
// for whom a registry has tokens made by.
type Login struct {
	Username, Password string
	// Docker is a configuration of Docker, as JSON.
	Docker string
	// Missing is why there is none though there is to be one. What is there already needs none.
	Missing string
}

// String has whoever prints a login print nothing of it.
func (l Login) String() string { return "a login that is not shown" }

// GoString does the same.
func (l Login) GoString() string { return l.String() }

// MarshalJSON does the same.
func (l Login) MarshalJSON() ([]byte, error) { return json.Marshal(l.String()) }

// check refuses what cannot be used for a URL.
func (l Login) check(from *url.URL) error {
	switch {
	case l == Login{}:
		return nil
	case l.Missing != "":
		return fmt.Errorf("%w: %s", ErrInvalid, l.Missing)
	case from.Scheme != "https" && from.Scheme != "oci":
		return fmt.Errorf("%w: a login is for https and oci, and %s would show it to others or needs none", ErrInvalid, from.Scheme)
	case from.Scheme == "https" && l.Docker != "":
		return fmt.Errorf("%w: a configuration of Docker has logins of registries, and none for https", ErrInvalid)
	}
	return nil
}

// of returns the login for the registry of a URL, empty if there is none for it.
func (l Login) of(registry string) (auth.CredentialFunc, error) {
	if l.Docker == "" {
		return auth.StaticCredential(registry, auth.Credential{Username: l.Username, Password: l.Password}), nil
	}
	store, err := credentials.NewMemoryStoreFromDockerConfig([]byte(l.Docker))
	if err != nil {
		return nil, fmt.Errorf("%w: the configuration of Docker cannot be read", ErrInvalid) // the error may show what it has
	}
	all := credentials.Credential(store)
	return func(ctx context.Context, host string) (auth.Credential, error) {
		if host != registry {
			return auth.EmptyCredential, nil
		}
		return all(ctx, host)
	}, nil
}

// unlogged says what to do about a registry that asks for a login of which there is none for it.
func unlogged(err error) error {
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return fmt.Errorf("it asks for a login that it was not given: spec.secretRef of a Plugin names the Secret that has it: %w", err)
	}
	return err
}

// only takes a login off a request that an answer has led to another host, or to another port of it: what Go leaves there for some of these.
func only(request *http.Request, from *url.URL) *http.Request {
	if request.Response == nil || request.URL.Host == from.Host && request.URL.Scheme == from.Scheme {
		return request
	}
	out := request.Clone(request.Context())
	for _, secret := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		out.Header.Del(secret)
	}
	return out
}
