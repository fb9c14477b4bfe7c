// Package forges speaks with the APIs of forges about pull requests: as much as promotions need, for five types of forges.
//
// It is written after their public references, and not over a library. Those that speak with several forges leave out whose copy of a repository a pull request
// comes from, without which a stranger's could be taken for one of ours, and cannot close one everywhere; the forges' own clients would be four, with none for
// Bitbucket Server, and some forty modules, for five calls each.
package forges

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// Repository is a repository of a forge, and as whom to ask the forge about it.
type Repository struct {
	// Forge is one of the types of package weave, URL how git clones the repository.
	Forge, URL string
	Token      string
	// CA holds certificates in PEM that the forge is to be trusted by, beside those of the system.
	CA []byte
}

// State says how a pull request stands.
type State int

// States of a pull request.
const (
	Open State = iota
	Merged
	Closed
)

// Pull is a pull request, as far as the forge is asked about it. All of it is what the forge says.
type Pull struct {
	Number int
	// Branch is what is to be merged, Base where to.
	Branch, Base string
	// Own says that Branch is one of the repository itself, and not of somebody's copy.
	Own   bool
	State State

	// version is how often it has changed, which Bitbucket asks for.
	version int
}

// Input is what a new pull request is made of.
type Input struct {
	Title, Body, Branch, Base string
}

var (
	// ErrForbidden says that the forge does not accept the token, or not for this.
	ErrForbidden = errors.New("the token is not accepted for this")
	// ErrNotFound says that there is no such repository or pull request, or that the forge hides it.
	ErrNotFound = errors.New("not found, or these credentials do not show it")
)

// BusyError says that a forge has had too many calls.
type BusyError struct {
	// Pause is how long it asks to be left alone.
	Pause time.Duration
	Err   error
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("it has had too many calls, and is left alone for a while: %v", e.Err)
}

// Unwrap implements the interface of package errors.
func (e *BusyError) Unwrap() error { return e.Err }

// driver is what differs between the types of forges. Paths are below the API's root.
type driver interface {
	// username is what git calls itself whose password is a token.
	username() string
	// pulls is where pull requests are, pull what one of them is called beside the repository's address.
	pulls() string
	pull(number int) string
	// list returns the query for a page of all pull requests for a branch, the newest first. Pages are counted from 0.
	list(base string, page int) url.Values
	// read and readAll take pull requests out of an answer.
	read(answer []byte) (Pull, error)
	readAll(answer []byte) ([]Pull, error)
	// create, comment and close are what is sent.
	create(Input) any
	comment(pull Pull, said string) order
	close(pull Pull) order
}

// order is a call that changes something.
type order struct {
	method, path string
	body         any
}

// Forge is the API of a forge, for one repository.
type Forge struct {
	driver
	client *http.Client
	as     outbound.Credentials
	// api is the root of the API, web the address of the repository for people.
	api, web string
	// query is what every call of the API has, such as its version.
	query string
}

const (
	// within is how long a forge may take for an answer.
	within = 30 * time.Second
	// mostAnswer bounds an answer, in bytes: a page of pull requests, each with its description and what it is about.
	mostAnswer = 16 << 20
	// pageSize is how many pull requests are asked for at a time, mostPages how often.
	pageSize  = 50
	mostPages = 20
	// mostSaid bounds what is shown of a forge's own words, in bytes.
	mostSaid = 300
)

// New returns the API of the forge of a repository. It calls nobody yet.
func New(of Repository, policy outbound.Policy) (*Forge, error) {
	if of.Token == "" {
		return nil, fmt.Errorf("%w: secretRef: the Secret has no token for the forge under the key token", outbound.ErrRefused)
	}
	place, err := placeOf(of.URL)
	if err != nil {
		return nil, err
	}
	f, err := place.forge(of.Forge)
	if err != nil {
		return nil, err
	}
	f.as = outbound.Credentials{BearerToken: of.Token, CA: of.CA}
	if of.Forge == weave.ForgeAzureDevOps {
		f.as = outbound.Credentials{Password: of.Token, CA: of.CA}
	}
	if _, err := policy.URL(f.api, f.as); err != nil {
		return nil, err
	}
	f.client, err = policy.Client(f.as, outbound.Limits{Timeout: within, Answer: mostAnswer})
	return f, err
}

// String names the repository.
func (f *Forge) String() string { return f.web }

// Username is what git calls itself where the token serves as the password.
func (f *Forge) Username() string { return f.username() }

// Address is where people find a pull request. It is made here: what a forge says it is could lead anywhere.
func (f *Forge) Address(number int) string { return f.web + f.pull(number) }

// Number returns which pull request an address of Address is that of.
func (f *Forge) Number(address string) (int, bool) {
	number, err := strconv.Atoi(address[strings.LastIndex(address, "/")+1:])
	return number, err == nil && number > 0 && f.Address(number) == address
}

// List returns the pull requests for a branch, the newest first. There are not more than a thousand of them.
func (f *Forge) List(ctx context.Context, base string) ([]Pull, error) {
	var out []Pull
	for page := range mostPages {
		answer, err := f.call(ctx, order{method: http.MethodGet, path: f.pulls() + "?" + f.list(base, page).Encode()})
		if err != nil {
			return nil, err
		}
		pulls, err := f.readAll(answer)
		if err != nil {
			return nil, malformed(err)
		}
		out = append(out, pulls...)
		if len(pulls) < pageSize {
			break
		}
	}
	return out, nil
}

// Find returns a pull request.
func (f *Forge) Find(ctx context.Context, number int) (Pull, error) {
	return f.one(ctx, order{method: http.MethodGet, path: f.path(number)})
}

// path is where a pull request is.
func (f *Forge) path(number int) string { return f.pulls() + "/" + strconv.Itoa(number) }

// Create opens a pull request.
func (f *Forge) Create(ctx context.Context, in Input) (Pull, error) {
	return f.one(ctx, order{http.MethodPost, f.pulls(), f.create(in)})
}

// Close closes a pull request, and says why. It is said last: who may not close one would else say it again and again.
func (f *Forge) Close(ctx context.Context, number int, why string) error {
	pull, err := f.Find(ctx, number)
	if err != nil || pull.State != Open {
		return err
	}
	for _, step := range []order{f.close(pull), f.comment(pull, why)} {
		if _, err := f.call(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

func (f *Forge) one(ctx context.Context, o order) (Pull, error) {
	answer, err := f.call(ctx, o)
	if err != nil {
		return Pull{}, err
	}
	pull, err := f.read(answer)
	switch {
	case err != nil:
		return Pull{}, malformed(err)
	case pull.Number <= 0:
		return Pull{}, malformed(errors.New("it has no number"))
	}
	return pull, nil
}

func malformed(err error) error {
	return fmt.Errorf("the forge answers with what is no pull request: %s", text.Line(err.Error(), mostSaid))
}

// call asks the API.
func (f *Forge) call(ctx context.Context, o order) ([]byte, error) {
	var body bytes.Buffer
	if o.body != nil {
		if err := json.NewEncoder(&body).Encode(o.body); err != nil {
			return nil, err
		}
	}
	address := f.api + o.path
	if f.query != "" {
		address += map[bool]string{true: "&", false: "?"}[strings.Contains(address, "?")] + f.query
	}
	request, err := http.NewRequestWithContext(ctx, o.method, address, &body)
	if err != nil {
		return nil, errors.New(outbound.Cause(err, f.as))
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "manifold")
	request.Header.Set("X-Atlassian-Token", "no-check") // it is no browser's form
	if o.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := f.client.Do(request)
	if errors.Is(err, outbound.ErrRefused) {
		return nil, fmt.Errorf("%w: %s", outbound.ErrRefused, outbound.Cause(err, f.as))
	}
	if err != nil {
		return nil, errors.New(outbound.Cause(err, f.as))
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(response.Body)
	if response.StatusCode < 200 || response.StatusCode > 299 || response.StatusCode == http.StatusNonAuthoritativeInfo { // with which Azure DevOps asks who it is
		refused := f.refused(response.StatusCode, answer.Bytes())
		if pause, busy := pauseOf(response, time.Now()); busy {
			return nil, &BusyError{Pause: pause, Err: refused}
		}
		return nil, meaning(response.StatusCode, refused)
	}
	if err != nil {
		return nil, errors.New(outbound.Cause(err, f.as))
	}
	return answer.Bytes(), nil
}

// refused is the error of an answer that is one.
func (f *Forge) refused(code int, answer []byte) error {
	err := fmt.Errorf("the forge answers %d %s", code, http.StatusText(code))
	if said := wordsOf(answer); said != "" {
		err = fmt.Errorf("%w: %s", err, text.Line(outbound.Cause(errors.New(said), f.as), mostSaid))
	}
	return err
}

// meaning adds to the error of an answer what its code means.
func meaning(code int, err error) error {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNonAuthoritativeInfo:
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

const (
	// usualPause is how long a forge that has had too many calls is left alone if it does not say for how long, and mostPause bounds what it says.
	usualPause = time.Minute
	mostPause  = time.Hour
)

// pauseOf is how long a forge asks to be left alone that has had too many calls, false if it has not. GitHub may say so by 403, as if the token were not accepted.
func pauseOf(response *http.Response, now time.Time) (pause time.Duration, busy bool) {
	after, left := response.Header.Get("Retry-After"), response.Header.Get("X-RateLimit-Remaining")
	switch response.StatusCode {
	case http.StatusTooManyRequests:
	case http.StatusForbidden:
		if after == "" && left != "0" {
			return 0, false
		}
	case http.StatusServiceUnavailable:
		if after == "" {
			return 0, false
		}
	default:
		return 0, false
	}
	pause = usualPause
	if seconds, err := strconv.Atoi(after); err == nil {
		pause = time.Duration(min(seconds, int(mostPause/time.Second))) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		pause = at.Sub(now)
	} else if reset, err := strconv.ParseInt(response.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil && left == "0" {
		pause = time.Unix(reset, 0).Sub(now)
	}
	return min(max(pause, time.Second), mostPause), true
}

// wordsOf takes out of an answer why it is an error: all five say it as one of these.
func wordsOf(answer []byte) string {
	var said struct {
		Message json.RawMessage `json:"message"`
		Errors  []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	_ = json.Unmarshal(answer, &said) // what is no such object says nothing
	var words []string
	if message := strings.Trim(string(said.Message), `"`); message != "" && message != "null" {
		words = append(words, message)
	}
	for _, each := range said.Errors {
		if each.Message != "" {
			words = append(words, each.Message)
		}
	}
	return strings.Join(words, ": ")
}
