package git

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/manifold-dev/manifold/internal/outbound"
)

// sshSession speaks with git-upload-pack or git-receive-pack over SSH. go-git's own session also reads the files of whoever runs the server, such as
// ~/.ssh/config, takes proxies from its environment, and bounds neither the addresses nor the answer.
type sshSession struct {
	dialer *net.Dialer
	config *ssh.ClientConfig
	// service is the program that is run there.
	service string
	host    string // with its port
	path    string
	most    int64 // bounds the answer with the pack, in bytes

	client *ssh.Client
	in     io.WriteCloser
	out    io.Reader
}

func (c *Client) overSSH(ep *transport.Endpoint, credentials Credentials, service string) (*sshSession, error) {
	key, err := signer(credentials)
	if err != nil {
		return nil, err
	}
	port := ep.Port
	if port == 0 {
		port = 22
	}
	host := net.JoinHostPort(strings.Trim(ep.Host, "[]"), strconv.Itoa(port))
	known, err := readKnownHosts(credentials.KnownHosts)
	if err != nil {
		return nil, err
	}
	user := ep.User
	if user == "" {
		user = "git"
	}
	return &sshSession{
		dialer:  outbound.Dialer(c.policy.Allow),
		service: service,
		host:    host,
		path:    ep.Path,
		most:    c.limits.Pack + mostOverhead,
		config: &ssh.ClientConfig{
			User:              user,
			Auth:              []ssh.AuthMethod{ssh.PublicKeys(key)},
			HostKeyCallback:   known.HostKeyCallback(),
			HostKeyAlgorithms: known.HostKeyAlgorithms(host),
		},
	}, nil
}

// signer reads the private key. A password that it does not need is for HTTPS.
func signer(c Credentials) (ssh.Signer, error) {
	key, err := ssh.ParsePrivateKey(c.SSHKey)
	if encrypted := (*ssh.PassphraseMissingError)(nil); errors.As(err, &encrypted) {
		if c.Password == "" {
			return nil, fmt.Errorf("%w: the private key is encrypted, and there is no password that opens it", ErrUnfit)
		}
		key, err = ssh.ParsePrivateKeyWithPassphrase(c.SSHKey, []byte(c.Password))
	}
	switch {
	case errors.Is(err, x509.IncorrectPasswordError):
		return nil, fmt.Errorf("%w: the password does not open the private key", ErrUnfit)
	case err != nil:
		return nil, fmt.Errorf("%w: the private key cannot be read: %w", ErrUnfit, err)
	}
	return key, nil
}

// readKnownHosts goes by way of a file, which is all that the parser reads.
func readKnownHosts(lines []byte) (*knownhosts.HostKeyDB, error) {
	file, err := os.CreateTemp("", "known-hosts-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(lines)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	known, err := knownhosts.NewDB(file.Name())
	if err != nil {
		return nil, fmt.Errorf("%w: known_hosts cannot be read: %s", ErrUnfit, strings.ReplaceAll(err.Error(), file.Name(), "line"))
	}
	return known, nil
}

// connect runs the program there. The connection ends with the context.
func (s *sshSession) connect(ctx context.Context) error {
	conn, err := s.dialer.DialContext(ctx, "tcp", s.host)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	over, channels, requests, err := ssh.NewClientConn(conn, s.host, s.config)
	if err != nil {
		conn.Close()
		return s.explain(ctx, err)
	}
	s.client = ssh.NewClient(over, channels, requests)
	session, err := s.client.NewSession()
	if err != nil {
		return s.explain(ctx, err)
	}
	if s.in, err = session.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = session.StdoutPipe(); err != nil {
		return err
	}
	return s.explain(ctx, session.Start(s.service+" "+quoted(s.path)))
}

// explain gives an error of the connection its reason.
func (s *sshSession) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case knownhosts.IsHostKeyChanged(err):
		return fmt.Errorf("%w: %s shows another key than known_hosts has for it: %w", ErrCredentials, s.host, err)
	case knownhosts.IsHostUnknown(err):
		return fmt.Errorf("%w: known_hosts has no key of %s: %w", ErrCredentials, s.host, err)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	return err
}

// quoted is how a shell takes a text as it is.
func quoted(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

// AdvertisedReferences implements transport.Session.
func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext implements transport.Session.
func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	shown := packp.NewAdvRefs()
	switch err := shown.Decode(io.LimitReader(s.out, mostRefs)); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, packp.ErrEmptyInput):
		return nil, transport.ErrRepositoryNotFound // the program has ended, and has said why elsewhere
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && shown.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(shown.Capabilities)
	return shown, nil
}

// UploadPack implements transport.UploadPackSession.
func (s *sshSession) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := request.UploadRequest.Encode(s.in); err != nil {
		return nil, err
	}
	if err := request.UploadHaves.Encode(s.in, false); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return nil, err
	}
	if err := s.in.Close(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(io.NopCloser(&measured{s.out, s.most})); err != nil {
		return nil, err
	}
	return response, nil
}

// ReceivePack implements transport.ReceivePackSession.
func (s *sshSession) ReceivePack(_ context.Context, request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	if err := request.Encode(s.in); err != nil {
		return nil, err
	}
	if err := s.in.Close(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	report := packp.NewReportStatus()
	if err := report.Decode(&measured{s.out, mostErrorBody}); err != nil {
		return nil, err
	}
	return report, report.Error()
}

// measured is an error once more is read than there may be. What comes before the pack is read into memory.
type measured struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (m *measured) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, fmt.Errorf("%w: the repository sends more than it may", ErrTooLarge)
	}
	n, err := m.Reader.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// Close implements io.Closer.
func (s *sshSession) Close() error {
	if s.client == nil {
		return nil
	}
	s.client.Close() // the far side may have closed it
	return nil
}
