package gittest

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
)

// trusting has git's programs serve repositories of whoever runs the tests.
var trusting = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}

// Backend is git's own program that answers over HTTP, below the name of the repository.
func (r *Repository) Backend() http.Handler {
	r.Helper()
	program := filepath.Join(r.Git("--exec-path"), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		r.Skip("git-http-backend is not installed")
	}
	return &cgi.Handler{Path: program, Env: append([]string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1"}, trusting...)}
}

// Path is where a Backend has the repository.
func (r *Repository) Path() string {
	path := "/" + filepath.Base(r.Dir)
	if _, err := os.Stat(filepath.Join(r.Dir, ".git")); err == nil {
		path += "/.git"
	}
	return path
}

// Serve returns the address of the repository over plain HTTP.
func (r *Repository) Serve() string {
	r.Helper()
	server := httptest.NewServer(r.Backend())
	r.Cleanup(server.Close)
	return server.URL + r.Path()
}

// Server is a repository over HTTPS.
type Server struct {
	*httptest.Server
	// Username and Password are asked for, unless there is no password. They are set before anybody asks.
	Username, Password string

	repository *Repository
	backend    http.Handler
	fetches    atomic.Int64
}

// ServeTLS serves the repository over HTTPS.
func (r *Repository) ServeTLS() *Server {
	r.Helper()
	s := &Server{Username: "ada", repository: r, backend: r.Backend()}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.answer))
	r.Cleanup(s.Close)
	return s
}

func (s *Server) answer(w http.ResponseWriter, request *http.Request) {
	username, password, _ := request.BasicAuth()
	if s.Password != "" && (username != s.Username || password != s.Password) {
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if request.Method == http.MethodPost {
		s.fetches.Add(1)
	}
	s.backend.ServeHTTP(w, request)
}

// CloneURL is the address of the repository.
func (s *Server) CloneURL() string { return s.URL + s.repository.Path() }

// CA is the certificate of the server, in PEM.
func (s *Server) CA() []byte { return CA(s.TLS) }

// Fetches counts how often something was fetched or pushed.
func (s *Server) Fetches() int { return int(s.fetches.Load()) }

// CA is what a server shows of itself, in PEM.
func CA(config *tls.Config) []byte {
	var out bytes.Buffer
	for _, certificate := range config.Certificates[0].Certificate {
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	}
	return out.Bytes()
}
