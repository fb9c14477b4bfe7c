package git

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/internal/text"
)

// Request says which commit of which repository is meant, and as whom to ask for it.
type Request struct {
	URL         string
	Ref         Ref
	Credentials Credentials
}

// Ref names a commit. At most one field is set. The zero Ref is the branch that the repository itself puts first.
type Ref struct {
	Branch string
	Tag    string
	Semver string // a range, such as ">=1.2.0 <2.0.0", over the tags that are versions
	Commit string // 40 hexadecimal digits
}

// String returns the ref as messages name it.
func (r Ref) String() string {
	switch {
	case r.Commit != "":
		return "commit " + r.Commit
	case r.Semver != "":
		return fmt.Sprintf("version %q", r.Semver)
	case r.Tag != "":
		return fmt.Sprintf("tag %q", r.Tag)
	case r.Branch != "":
		return fmt.Sprintf("branch %q", r.Branch)
	default:
		return "the default branch"
	}
}

// Credentials say who asks. Whoever asks over HTTPS has a username and a password; over SSH, a key.
type Credentials struct {
	// Username and Password are for HTTPS. Over SSH the password opens the key, if that is encrypted, and is told to nobody.
	Username, Password string
	// SSHKey is a private key in PEM, KnownHosts the keys of hosts as OpenSSH lists them.
	SSHKey, KnownHosts []byte
	// CA holds certificates in PEM that an HTTPS server is to be trusted by, beside those of the system.
	CA []byte
}

func (c Credentials) forHTTP() bool {
	return c.Username != "" || c.Password != ""
}

// secrets are the texts that must never show in a message.
func (c Credentials) secrets() []string { return []string{c.Password} }

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// validate checks the ref and returns its version range, if it has one.
func (r Ref) validate() (*semver.Constraints, error) {
	set := 0
	for _, name := range []string{r.Branch, r.Tag, r.Semver, r.Commit} {
		if name != "" {
			set++
		}
		if len(name) > mostName || strings.ContainsFunc(name, unicode.IsControl) {
			return nil, fmt.Errorf("%w: ref: names have at most %d characters, and no control characters", ErrRefused, mostName)
		}
	}
	switch {
	case set > 1:
		return nil, fmt.Errorf("%w: ref: at most one of branch, tag, semver and commit", ErrRefused)
	case r.Commit != "" && !fullHash.MatchString(r.Commit):
		return nil, fmt.Errorf("%w: ref.commit: 40 hexadecimal digits in lower case", ErrRefused)
	case r.Semver == "":
		return nil, nil
	}
	constraint, err := semver.NewConstraint(r.Semver)
	if err != nil {
		return nil, fmt.Errorf("%w: ref.semver: %q is no range of versions: %w", ErrRefused, r.Semver, err)
	}
	return constraint, nil
}

// mostName bounds the names of branches and tags, mostURL the URL.
const (
	mostName = 250
	mostURL  = 2048
)

// endpoint parses the URL of a repository and refuses what the policy does not allow.
func (p Policy) endpoint(r Request) (*transport.Endpoint, error) {
	if len(r.URL) > mostURL || strings.ContainsFunc(r.URL, unicode.IsControl) {
		return nil, fmt.Errorf("%w: url: at most %d characters, and no control characters", ErrRefused, mostURL)
	}
	ep, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: url: it cannot be parsed", ErrRefused) // the parser's words repeat the URL with all that is in it
	}
	if ep.Protocol != "file" && ep.Host == "" {
		return nil, fmt.Errorf("%w: url: a host is missing", ErrRefused)
	}
	if ep.Password != "" || ep.User != "" && ep.Protocol != "ssh" {
		return nil, fmt.Errorf("%w: url: credentials do not belong into a URL; put them into a Secret", ErrRefused)
	}
	switch ep.Protocol {
	case "https":
		return ep, nil
	case "http":
		return ep, p.plainHTTP(r.Credentials)
	case "ssh":
		return ep, forSSH(r.Credentials)
	case "file":
		ep.Path, err = p.file(ep.Path)
		return ep, err
	default:
		return nil, fmt.Errorf("%w: url: scheme %q is not supported; use https or ssh", ErrRefused, ep.Protocol)
	}
}

func (p Policy) plainHTTP(c Credentials) error {
	switch {
	case !p.PlainHTTP:
		return fmt.Errorf("%w: url: http is not allowed here; use https, or have the server's admin allow it by --outbound-http", ErrRefused)
	case c.forHTTP() && !p.CredentialsInClear:
		return fmt.Errorf("%w: url: credentials are not sent over http; use https", ErrRefused)
	}
	return nil
}

func forSSH(c Credentials) error {
	switch {
	case len(c.SSHKey) == 0:
		return fmt.Errorf("%w: ssh needs a private key, which identity of a Secret holds", ErrUnfit)
	case len(c.KnownHosts) == 0:
		return fmt.Errorf("%w: ssh needs known_hosts, or anybody could answer in the host's name", ErrUnfit)
	}
	return nil
}

// errElsewhere says that a path is not below a folder that is allowed, or leads out of it. It does not tell whether there is anything.
var errElsewhere = fmt.Errorf("%w: url: repositories on the server's own disk are allowed below the folders alone that its flag --outbound-files names", ErrRefused)

// file returns where the repository at a path of the server's own disk really is.
func (p Policy) file(at string) (string, error) {
	if len(p.Files) == 0 {
		return "", fmt.Errorf("%w: url: repositories on the server's own disk are not allowed; its admin allows those below a folder by --outbound-files", ErrRefused)
	}
	real, err := filepath.EvalSymlinks(at)
	if errors.Is(err, fs.ErrNotExist) && p.below(filepath.Clean(at)) {
		return "", transport.ErrRepositoryNotFound
	}
	if err != nil || !p.below(real) {
		return "", errElsewhere
	}
	inside, err := filepath.EvalSymlinks(filepath.Join(real, ".git"))
	switch {
	case err != nil || !isFolder(inside):
		return real, nil // it is bare, or none
	case !p.below(inside):
		return "", errElsewhere
	}
	return inside, nil
}

// below reports whether a path, in which there are no links, is in one of the folders that are allowed.
func (p Policy) below(at string) bool {
	return slices.ContainsFunc(p.Files, func(folder string) bool {
		inside, err := filepath.Rel(folder, at)
		return err == nil && filepath.IsLocal(inside)
	})
}

// shown returns the URL without what may be secret in it.
func shown(raw string) string {
	if len(raw) > mostURL {
		return "the repository"
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		if _, after, found := strings.Cut(raw, "@"); found && !strings.Contains(raw, "://") {
			return after // as scp writes it
		}
		return "the repository"
	}
	parsed.RawQuery, parsed.Fragment, parsed.User = "", "", nil
	return parsed.String()
}

// What is wrong with a request or an answer, for those who act on it.
var (
	// ErrRefused says that the request is not allowed or makes no sense; asking again is of no use.
	ErrRefused = outbound.ErrRefused
	// ErrUnfit says that the credentials are of no use for such a URL, whatever its host says: something is missing, or cannot be read.
	ErrUnfit = outbound.ErrUnfit
	// ErrNoRef says that the repository has no such branch, tag, version or commit.
	ErrNoRef = errors.New("not found in the repository")
	// ErrNoRepository says that there is no such repository, or that its host hides it.
	ErrNoRepository = errors.New("there is no such repository, or these credentials do not show it")
	// ErrCredentials says that the host does not accept the credentials.
	ErrCredentials = errors.New("the credentials are not accepted")
	// ErrUntrusted says that nobody vouches for the server.
	ErrUntrusted = errors.New("the server is not trusted")
	// ErrTooLarge says that the repository exceeds a bound.
	ErrTooLarge = errors.New("too large")
	// ErrContent says that something in the commit cannot be used.
	ErrContent = errors.New("cannot be used")
)

// Error says what failed, of which repository and which ref. It holds no credentials.
type Error struct {
	Doing, URL string
	Ref        Ref
	Err        error

	secrets []string
}

func (e *Error) Error() string {
	said := e.Err.Error()
	for _, secret := range e.secrets {
		if len(secret) >= leastSecret {
			said = strings.ReplaceAll(said, secret, "...")
		}
	}
	return fmt.Sprintf("%s %s of %s: %s", e.Doing, e.Ref, e.URL, text.Line(said, mostSaid))
}

// leastSecret is how long a secret is at least, in bytes, to be looked for in messages. Shorter ones are parts of ordinary words.
const leastSecret = 4

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// mostSaid bounds what an error shows of its cause, of which a part may come from the repository's host.
const mostSaid = 600

// explain wraps an error of a request.
func (r Request) explain(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrRepositoryNotFound):
		err = fmt.Errorf("%w: %w", ErrNoRepository, err)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed), errors.Is(err, transport.ErrInvalidAuthMethod):
		err = fmt.Errorf("%w: %w", ErrCredentials, err)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		err = fmt.Errorf("%w: %w", ErrNoRef, err)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer in time: %w", err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		err = fmt.Errorf("%w: ca.crt of a Secret is to hold its certificate authority: %w", ErrUntrusted, err)
	}
	return &Error{Doing: doing, URL: shown(r.URL), Ref: r.Ref, Err: err, secrets: r.Credentials.secrets()}
}
