package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/internal/text"
)

const (
	// mostRedirects bounds how often an answer may lead on.
	mostRedirects = 10
	// mostHeaders and mostMetadata bound what a server says beside the program, in bytes.
	mostHeaders  = 64 << 10
	mostMetadata = 4 << 20
	// answerWithin is how long a server may take to begin an answer.
	answerWithin = 30 * time.Second
	mostSaid     = 200
	mostShown    = 300
)

// shown is what messages say of an address: who may read an event need not see credentials, nor the query, which may be one.
func shown(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "the program"
	}
	parsed.RawQuery = ""
	return text.Line(parsed.Redacted(), mostShown)
}

// openProgram begins to read what is at an address.
func (r reader) openProgram(ctx context.Context, address string, login Login) (program, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return program{}, fmt.Errorf("%w: it is no URL", ErrInvalid)
	}
	if parsed.User != nil {
		return program{}, fmt.Errorf("%w: a URL may not hold credentials", ErrInvalid)
	}
	if err := login.check(parsed); err != nil {
		return program{}, err
	}
	var from io.ReadCloser
	switch parsed.Scheme {
	case "file":
		from, err = openFile(parsed)
	case "https", "http":
		from, err = r.openHTTP(ctx, parsed, login)
	case "oci":
		from, err = r.openImage(ctx, parsed, login)
	default:
		err = fmt.Errorf("%w: a URL must begin with file://, https://, http:// or oci://", ErrInvalid)
	}
	if err != nil {
		return program{}, err
	}
	return r.measured(ctx, from), nil
}

// openFile opens a file of this machine. What is no file, such as a pipe or a device, could keep who reads it for ever.
func openFile(from *url.URL) (io.ReadCloser, error) {
	if from.Host != "" || !filepath.IsAbs(from.Path) {
		return nil, fmt.Errorf("%w: a file is named by its absolute path, with three slashes", ErrInvalid)
	}
	file, err := os.OpenFile(from.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: it is no file", ErrInvalid)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (r reader) openHTTP(ctx context.Context, from *url.URL, login Login) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	if login != (Login{}) {
		request.SetBasicAuth(login.Username, login.Password)
	}
	response, err := r.over.client(from).Do(request)
	if of := (*url.Error)(nil); errors.As(err, &of) {
		return nil, of.Err // it has the address, whose query may be a secret
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("the server answers %s", text.Line(response.Status, mostSaid))
	}
	return response.Body, nil
}

// openImage opens the one layer of an artifact. Of one for several platforms, it is that for the platform of this process.
func (r reader) openImage(ctx context.Context, from *url.URL, login Login) (io.ReadCloser, error) {
	repository, err := remote.NewRepository(from.Host + from.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	client := &auth.Client{Client: r.over.client(&url.URL{Scheme: "https", Host: from.Host}), Cache: auth.NewCache()}
	if login != (Login{}) {
		if client.Credential, err = login.of(repository.Reference.Host()); err != nil {
			return nil, err
		}
	}
	repository.Client = client
	repository.MaxMetadataBytes = mostMetadata
	reference := repository.Reference.ReferenceOrDefault()
	found, err := repository.Resolve(ctx, reference)
	if err != nil {
		return nil, err
	}
	if found.MediaType == ocispec.MediaTypeImageIndex || found.MediaType == dockerList {
		if found, err = forPlatform(ctx, repository, found); err != nil {
			return nil, err
		}
	}
	var manifest ocispec.Manifest
	if err := readJSON(ctx, repository, found, &manifest); err != nil {
		return nil, err
	}
	if len(manifest.Layers) != 1 {
		return nil, fmt.Errorf("%w: the artifact must have one layer, which is the program, and has %d", ErrInvalid, len(manifest.Layers))
	}
	layer := manifest.Layers[0]
	if layer.Size > r.most {
		return nil, tooLarge(r.most)
	}
	return repository.Blobs().Fetch(ctx, layer)
}

const dockerList = "application/vnd.docker.distribution.manifest.list.v2+json"

func forPlatform(ctx context.Context, from content.Fetcher, of ocispec.Descriptor) (ocispec.Descriptor, error) {
	var index ocispec.Index
	if err := readJSON(ctx, from, of, &index); err != nil {
		return ocispec.Descriptor{}, err
	}
	var others []string
	for _, manifest := range index.Manifests {
		if manifest.Platform == nil {
			continue
		}
		if manifest.Platform.OS == runtime.GOOS && manifest.Platform.Architecture == runtime.GOARCH {
			return manifest, nil
		}
		others = append(others, manifest.Platform.OS+"/"+manifest.Platform.Architecture)
	}
	return ocispec.Descriptor{}, fmt.Errorf("%w: there is none for %s/%s, but for %s", ErrInvalid, runtime.GOOS, runtime.GOARCH, text.Line(strings.Join(others, ", "), mostSaid))
}

// readJSON reads what describes an artifact, whose size is bounded before it is read.
func readJSON(ctx context.Context, from content.Fetcher, of ocispec.Descriptor, into any) error {
	if of.Size > mostMetadata {
		return fmt.Errorf("what describes the artifact has %d bytes, more than %d", of.Size, mostMetadata)
	}
	read, err := content.FetchAll(ctx, from, of)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(read, into); err != nil {
		return fmt.Errorf("read what describes the artifact: %w", err)
	}
	return nil
}

// transport calls the host that an admin has named wherever it is, and where that leads only what is found by routing.
type transport struct {
	named, led http.RoundTripper
}

func newTransport(roots *x509.CertPool) *transport {
	over := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    answerWithin,
		ResponseHeaderTimeout:  answerWithin,
		MaxResponseHeaderBytes: mostHeaders,
		DisableKeepAlives:      true,
		DisableCompression:     true, // what comes is what is compared
	}
	led := over.Clone()
	led.DialContext = outbound.Dialer(nil).DialContext
	return &transport{named: over, led: led}
}

// client returns a client for what is at an address and where it leads.
func (t *transport) client(from *url.URL) *http.Client {
	return &http.Client{Transport: following{t, from}, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) > mostRedirects:
			return errors.New("the answer leads in circles")
		case to.Method != http.MethodGet && to.Method != http.MethodHead:
			return errors.New("the answer leads what was sent along elsewhere, which is not followed") // it may be a login
		}
		return nil
	}}
}

type following struct {
	*transport
	from *url.URL
}

// RoundTrip implements http.RoundTripper.
func (f following) RoundTrip(request *http.Request) (*http.Response, error) {
	request = only(request, f.from)
	to := request.URL
	if to.Scheme != f.from.Scheme && (to.Scheme != "https" || f.from.Scheme != "http") {
		return nil, fmt.Errorf("the answer leads from %s to %s, which is not followed", f.from.Scheme, text.Line(to.Scheme, mostSaid))
	}
	if to.Host == f.from.Host {
		return f.named.RoundTrip(request)
	}
	// A proxy of the server's own network may be called, and what it calls is its to decide.
	if proxy, err := http.ProxyFromEnvironment(request); err != nil || proxy != nil {
		return f.named.RoundTrip(request)
	}
	return f.led.RoundTrip(request)
}
